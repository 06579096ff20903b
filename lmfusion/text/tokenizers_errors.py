"""Errors of the package tokenizers, and tables that do not belong to a tokenizer, as one line."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from lmfusion.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer

ROLES = ("<s>", "<pad>", "</s>", "<unk>")
"""fairseq's symbols, in the order of every dictionary."""


class TokenizersErrors:
    """A block in which an error of the package tokenizers becomes one line.

    Its compiled code raises Exception itself, and panics with what is no Exception: neither has a narrower type.

    Args:
        what: what cannot be done, for the message.
    """

    def __init__(self, what: str) -> None:
        self.what = what

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Raise an InputError for what the package raises; other errors pass."""
        if error is not None and (type(error) is Exception or type(error).__name__ == "PanicException"):
            raise InputError(f"{self.what} ({first_line(error)[:200]}).") from error


def check_table(tokenizer: Tokenizer, symbols: Sequence[str], ids: Sequence[int], opening: Sequence[str]) -> None:
    """Refuse a table that does not belong to a tokenizer.

    Args:
        tokenizer: of the package tokenizers.
        symbols: in the order of a dictionary.
        ids: of each symbol in the model.
        opening: symbols in front of a sentence.

    Raises:
        InputError: saying what is wrong.
    """
    plain = all(isinstance(symbol, str) for symbol in symbols) and all(type(number) is int for number in ids)
    if not plain or len(symbols) != len(ids) or tuple(symbols[: len(ROLES)]) != ROLES:
        raise InputError("the table of symbols beside the tokenizer in this checkpoint is damaged.")
    known = set(tokenizer.get_vocab(True).values())
    if not set(opening) <= set(symbols) or not set(ids) <= known:
        raise InputError(
            f"the table of symbols in this checkpoint is not that of its tokenizer, which has {len(known):,} pieces."
        )


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or its name where it has none."""
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
