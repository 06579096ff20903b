"""Text of the pieces of Hugging Face tokenizers, as fairseq-generate prints them in its S- lines.

Exact for byte-level pieces (GPT-2, RoBERTa); WordPiece (BERT) does not say where punctuation stood beside a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

_SPACE = "\u0120"
"""A space in byte-level pieces."""
_CONTINUED = "##"
_LEAST = 0.03
"""Share of WordPiece's continued pieces in a text, from which two number signs are taken for its mark."""
_ESCAPED = re.compile(r"\\([0-9a-f]+);")


def piece_joiner(texts: Sequence[str]) -> Callable[[str], str] | None:
    """Return a function that makes text of pieces of the kind that these texts are in; None: they are in none.

    Args:
        texts: all lines of one side, pieces with spaces between.
    """
    symbols = [symbol for text in texts for symbol in text.split(" ")]
    if any(symbol.startswith(_SPACE) for symbol in symbols):
        return _join_bytes
    continued = sum(symbol.startswith(_CONTINUED) and len(symbol) > len(_CONTINUED) for symbol in symbols)
    return _join_words if continued > _LEAST * len(symbols) else None


def _join_words(text: str) -> str:
    return _unescaped(text.replace(f" {_CONTINUED}", ""))


def _join_bytes(text: str) -> str:
    """Join pieces whose letters stand for bytes; others (<unk>) stay as they are."""
    letters = _unescaped(text.replace(" ", ""))
    return b"".join(_BYTES.get(letter, letter.encode()) for letter in letters).decode(errors="replace").strip()


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda code: chr(int(code[1], 16)), text)


def _byte_letters() -> dict[str, bytes]:
    """Return the byte of each letter: itself where it can be printed, else the letters from 256 on (Radford 2019)."""
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [number for number in range(0x100) if number not in printed]
    pairs = [*zip(printed, printed), *((0x100 + place, number) for place, number in enumerate(others))]
    return {chr(letter): bytes([number]) for letter, number in pairs}


_BYTES = _byte_letters()
