"""Plain values in the place of objects, so that ``torch.load(weights_only=True)`` reads a checkpoint as it is."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from typing import Any

import numpy as np

_BY_ATTRIBUTE = ("model", "task")
"""Sections of a configuration that fairseq builds things from, some by attributes."""


def with_plain_values(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without arrays (meters of ``--eval-bleu``) and Namespaces (optimizers without a dataclass).

    Args:
        state: a checkpoint; it is not changed.
    """
    # Weights have the versions of their modules as an attribute of their dictionary.
    made = {"model": lambda weights: weights, "cfg": _plain_sections}
    return {name: made.get(name, plain)(value) for name, value in state.items()}


def _plain_sections(cfg: Any) -> Any:
    if not isinstance(cfg, dict):
        return plain(cfg)
    return {name: section if name in _BY_ATTRIBUTE else plain(section) for name, section in cfg.items()}


def plain(value: Any) -> Any:
    """Return a value with lists, dictionaries and Python's numbers in the place of arrays, Namespaces and numpy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Namespace):
        return plain(vars(value))
    if type(value) in (dict, OrderedDict):
        return type(value)((name, plain(each)) for name, each in value.items())
    if type(value) in (list, tuple):
        return type(value)(plain(each) for each in value)
    return value
