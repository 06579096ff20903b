"""What sentencepiece says while it learns a BPE, in words of this package."""

from __future__ import annotations

import re
from pathlib import Path

from lmfusion.text.textio import DataError

SPECIAL_SYMBOLS = 3  # sentencepiece's <unk>, <s>, </s>
_TOO_MANY = re.compile(r"set it to a value <= (\d+)")
_TOO_FEW = re.compile(r"smaller than required_chars\. \d+ vs (\d+)")
LOGGED = re.compile(r"(?:\.cc:\d+\]|LOG\(\w+\)) (.*)")
"""A message in a line that sentencepiece writes; the others are of its logging itself."""


class SizeError(DataError):
    """Refuse a number of symbols; ``possible`` is one that can be learned from the text, if sentencepiece names one."""

    def __init__(self, message: str, possible: int | None) -> None:
        super().__init__(message)
        self.possible = possible


def size_error(paths: list[Path], size: int, said: str) -> SizeError:
    """Return the error of sentencepiece in one line, with the number of symbols to ask for where it names one."""
    few, many = _TOO_FEW.search(said), _TOO_MANY.search(said)
    named = few or many
    possible = int(named[1]) - SPECIAL_SYMBOLS if named else None
    if few:
        why = "Its characters alone are more: give a larger --size"
    elif many:
        why = "It repeats itself too much: give more text or a smaller --size"
    else:
        why = f"Give more text or a smaller --size (sentencepiece: {' '.join(said.split())})"
    return SizeError(
        f"{', '.join(map(str, paths))}: a BPE of {size} symbols cannot be learned from this text. {why}"
        f"{f', {possible}' if possible else ''} (lmfusion data: --bpe-size).",
        possible,
    )
