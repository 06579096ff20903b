"""Precision, recall and F1, of which ROUGE has one each per metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable, Generic, TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Measures(Generic[T]):
    """Something that there is of precision, recall and F1."""

    precision: T
    recall: T
    f1: T


PairScore = Measures[float]
"""All in 0..1. Like the script: rounded to five decimals, and F1 computed from the rounded two. Else not rounded."""

Scorer = Callable[[str, str], dict[str, PairScore]]
"""From a summary and its reference, one sentence per line, to the scores by metric: rouge1, rouge2 and rougeL."""
