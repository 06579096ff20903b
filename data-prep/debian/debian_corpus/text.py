"""Words and normal forms, shared by cleaning and by the near-duplicate search."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces: every character counts as a word, else a whole clause would be one.
UNSPACED = "\u0e00-\u0e7f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_WORD = re.compile(rf"[{UNSPACED}]|[^\W\d_{UNSPACED}]+|\d+")
_UNSPACED_CHAR = re.compile(rf"([{UNSPACED}])")
# Soft hyphens, zero-width characters, byte-order marks, bidi controls: invisible, and each splits a type in two.
_INVISIBLE = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff]")
_CONTROL = re.compile("[\u0000-\u0008\u000e-\u001f\u007f-\u009f\ufffd]")


def tidy(text: str) -> str:
    """NFC, no invisible or control characters, single spaces."""
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    return " ".join(_CONTROL.sub(" ", text).split())


def words(text: str) -> list[str]:
    """Case-folded words without punctuation; every run of digits (and dots between them) is one "0".

    Versions and sizes are what differs between gcc-11 and gcc-12, so for finding duplicates they are all alike.
    """
    found: list[str] = []
    for match in _WORD.finditer(text.casefold()):
        word = "0" if match.group()[0].isdigit() else match.group()
        if word != "0" or not found or found[-1] != "0":
            found.append(word)
    return found


def key(text: str) -> str:
    """The form under which two texts count as the same."""
    return " ".join(words(text))


def count_words(text: str) -> int:
    """Words as people count them: by spaces, or by characters where a script has none."""
    return len(_UNSPACED_CHAR.sub(r" \1 ", text).split())
