"""A language model's symbols as lists of text: stored as numbers, compared, and made a dictionary of fairseq's."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Sequence

import torch
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.errors import InputError


def encode_symbols(symbols: Sequence[str]) -> Tensor:
    """Turn symbols into the int32 code points of their newline-joined text."""
    return torch.tensor([ord(char) for char in "\n".join(symbols)], dtype=torch.int32)


def decode_symbols(codes: Tensor) -> list[str]:
    """Turn code points back into symbols: the inverse of :func:`encode_symbols`."""
    return "".join(map(chr, codes.tolist())).split("\n")


def dictionary_hash(symbols: Iterable[str]) -> str:
    """Return the SHA-256 (hex) of a dictionary: its symbols in index order, special symbols included.

    Counts do not matter: two dictionaries with this hash give every token the same index.
    """
    return hashlib.sha256("\n".join(symbols).encode("utf-8")).hexdigest()


def first_difference(ours: Sequence[str], theirs: Sequence[str]) -> int | None:
    """Return the first index at which two lists of symbols differ, or None if they are equal."""
    for index, (our_symbol, their_symbol) in enumerate(zip(ours, theirs)):
        if our_symbol != their_symbol:
            return index
    return None if len(ours) == len(theirs) else min(len(ours), len(theirs))


def check_symbols(trained: Sequence[str], given: Sequence[str], *, what: str, model: str = "language model") -> None:
    """Refuse a dictionary that is not the one a pretrained model was trained with.

    Args:
        trained: the pretrained model's symbols.
        given: the symbols of the data or of the side the model is used on.
        what: name of the given dictionary for the message, e.g. "the source dictionary".
        model: what the pretrained model is, for the message.

    Raises:
        InputError: naming the first index and the two symbols that differ.
    """
    index = first_difference(trained, given)
    if index is None:
        return
    ours = repr(trained[index]) if index < len(trained) else "nothing (it ends there)"
    theirs = repr(given[index]) if index < len(given) else "nothing (it ends there)"
    raise InputError(
        f"{what} is not the dictionary the {model} was trained with: they differ first at "
        f"index {index}, where the {model} has {ours} and {what} has {theirs} "
        f"({len(trained)} and {len(given)} symbols). Encode the data with the {model}'s BPE "
        f"and give its dict.txt to fairseq-preprocess (--srcdict/--tgtdict)."
    )


def dictionary_of(symbols: Sequence[str]) -> Dictionary:
    """Return a fairseq dictionary with these symbols in this order.

    Raises:
        InputError: if they do not begin with fairseq's special symbols, or one stands twice.
    """
    dictionary = Dictionary()
    for symbol in symbols[len(dictionary) :]:
        dictionary.add_symbol(symbol)
    if list(dictionary.symbols) != list(symbols):
        raise InputError(
            f"these {len(symbols)} symbols are no fairseq dictionary: it begins with "
            f"{', '.join(Dictionary().symbols)} and has every symbol once."
        )
    return dictionary


def plain_word(given: Sequence[str], symbols: Collection[str]) -> str | None:
    """Return a word of a plain text whose symbols should be pieces of words, and None of all other texts.

    Args:
        given: what stands between white space in the text.
        symbols: of a dictionary; a tenth of those of a BPE or more have its mark.
    """
    strange = next((symbol for symbol in given if symbol not in symbols), None)
    for is_piece in (_opens_a_word, _goes_on):
        if strange is not None and not any(map(is_piece, given)) and 10 * sum(map(is_piece, symbols)) > len(symbols):
            return strange
    return None


def _opens_a_word(symbol: str) -> bool:
    """Return True for sentencepiece's mark."""
    return symbol.startswith("▁")


def _goes_on(symbol: str) -> bool:
    """Return True for the mark of subword-nmt and fastBPE."""
    return symbol.endswith("@@")
