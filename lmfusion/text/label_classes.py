"""Find the classes of a labelled file."""

from __future__ import annotations

import logging
import unicodedata
from collections.abc import Iterable, Sequence

from lmfusion.text.labelled import BINARY, SCORE, TAGS, Example

logger = logging.getLogger(__name__)


def classes_of(examples: Sequence[Example], kind: str) -> list[str]:
    """Return the classes among the labels, in order: numbers by size, words by the alphabet."""
    if kind == SCORE:
        return []
    if kind == BINARY:
        return ["0", "1"]
    given = [each.label or "" for each in examples]
    labels = {word for label in given for word in (label.split() if kind == TAGS else [label])}
    _warn_of_likes(labels)
    return sorted(labels, key=lambda label: (not label.isdecimal(), int(label) if label.isdecimal() else 0, label))


def _warn_of_likes(labels: Iterable[str]) -> None:
    """Name labels that look the same and are two classes, such as one in NFC and one in NFD."""
    known: dict[str, str] = {}
    for label in sorted(labels):
        other = known.setdefault(unicodedata.normalize("NFC", " ".join(label.split())), label)
        if other != label:
            logger.warning(f"the labels {other!a} and {label!a} look the same and are two classes: write one.")
