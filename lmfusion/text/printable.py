"""Text of others that is safe to print on one line of a terminal or a page, and settings as people write them."""

from __future__ import annotations

import re
import unicodedata

_UNSEEN = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
"""Soft hyphens, joiners, marks of direction and spaces without width."""
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def printable(text: str) -> str:
    """Return text with a space for each stretch of line ends and other control characters."""
    return _CONTROL.sub(" ", text)


def unless_unseen(text: str) -> str:
    """Return a text, or an empty one where nothing of it is seen: white space and characters without width."""
    return text if _UNSEEN.sub("", text).strip() else ""


def standing_alone(text: str) -> str:
    """Return a symbol as it can stand by itself: a mark at its beginning on a circle, what is not seen by its number.

    Marks are accents and the vowel signs of Indic scripts; a joiner or another character without width is U+200D.
    """
    kinds = [unicodedata.category(letter) for letter in text]
    if text and all(kind == "Cf" for kind in kinds):
        return " ".join(f"U+{ord(letter):04X}" for letter in text)
    return f"\u25cc{text}" if kinds and kinds[0].startswith("M") else text


def told(value: object) -> str:
    """Return a setting as people write it: "en, de", "S2S_LR=1 LM_UPDATES=9", "none" for an empty one."""
    if isinstance(value, dict):
        return " ".join(f"{name}={one}" for name, one in value.items()) or "none"
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
