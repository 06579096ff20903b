"""Text of strangers inside Markdown: shown as it is, never taken for markup, HTML or a terminal's commands."""

from __future__ import annotations

import html
import re

from lmfusion.text.printable import printable

# An underscore inside a word is no emphasis, and names are full of them.
_MARKUP = re.compile(r"[\\`*~\[\]]|(?<![^\W_])_|_(?![^\W_])")


def escape(text: str) -> str:
    """Return Markdown that is shown as this text, on one line; not for the beginning of a line."""
    return _MARKUP.sub(r"\\\g<0>", html.escape(printable(text), quote=False))


def escape_cell(text: str) -> str:
    """Return Markdown that is shown as this text in a cell of a table."""
    return escape(text).replace("|", "\\|")


def code_block(text: str, language: str) -> str:
    """Return a fenced block of code that nothing in the code ends."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
