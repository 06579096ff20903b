"""What a score is asked of: lists of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lmfusion.errors import InputError


def check_texts(texts: Any, name: str) -> None:
    """Refuse what is no list of texts, such as one text, whose letters would be scored one by one.

    Args:
        texts: what was given.
        name: of the system or reference, for the message.

    Raises:
        InputError: naming it, and the first that is no text.
    """
    if isinstance(texts, str):
        raise InputError(f"{name} is one text: give a list of texts, one per sentence.")
    if not isinstance(texts, Sequence):
        raise InputError(f"{name} is a {type(texts).__name__}: give a list of texts, one per sentence.")
    for number, text in enumerate(texts, start=1):
        if not isinstance(text, str):
            raise InputError(f"{name}: number {number} is a {type(text).__name__} and no text (str).")
