"""Text of others that is safe to print on one line of a terminal or a page."""

from __future__ import annotations

import re

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")


def printable(text: str) -> str:
    """Return text with a space for each stretch of line ends and other control characters."""
    return _CONTROL.sub(" ", text)
