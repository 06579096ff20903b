"""The pieces of a Hugging Face tokenizer as symbols that fairseq's text formats can hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmfusion.text.tokenizers_errors import ROLES

if TYPE_CHECKING:
    from tokenizers import Tokenizer


def symbols_of(tokenizer: Tokenizer, pieces: list[str]) -> list[str]:
    """Return the symbol of each piece but those in a role; different pieces have different symbols.

    A tokenizer that takes symbols between spaces, as ``lmfusion hf export`` writes one of a model that has no other,
    has symbols of prepared text for pieces: they stay what they are there, with their backslashes.
    """
    if type(tokenizer.model).__name__ == "WordLevel":
        found = [piece if piece.split() == [piece] and piece not in ROLES else escape(piece) for piece in pieces]
        if len(set(found)) == len(found):
            return found
    return [escape(piece) for piece in pieces]


def escape(piece: str) -> str:
    """Write a piece as a symbol without white space that is none of fairseq's own; different pieces stay different."""
    if piece in ROLES:
        return _code(piece[0]) + piece[1:]
    return "".join(_code(char) if char.isspace() or char == "\\" else char for char in piece) or "\\;"


def _code(char: str) -> str:
    return f"\\{ord(char):x};"
