"""Keep the symbols of a language model inside its weights, and check the dictionary of a side against them.

A model is useless with another dictionary, and a wrong one is hard to notice: every index is valid. So the symbols
travel in the state dict, as the code points of the symbols joined by newlines, and loading into a model of another
dictionary is an error that names the first symbol that differs. Integers survive half precision and averaging.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor, nn

from lmfusion.errors import InputError

BOS, PAD, EOS, UNK = "<s>", "<pad>", "</s>", "<unk>"


@dataclass(frozen=True)
class Framed:
    """Rows of tokens with the symbols around them that a language model expects.

    Attributes:
        tokens: B x T' token indices.
        keep: positions of the side's own tokens among the T'.
    """

    tokens: Tensor
    keep: slice

    def crop(self, states: Tensor) -> Tensor:
        """Keep the states of the side's own tokens: B x T' x C -> B x T x C."""
        return states[:, self.keep]


class Vocabulary(nn.Module):
    """A language model's symbols, and the frame it expects around a sentence.

    A side's rows are ``w1 ... wn </s>``. A language model may have been trained with symbols in front of that
    (``</s>``, ``[CLS]``); its own closing symbol stands where the side has ``</s>``.

    Args:
        symbols: in index order, special symbols included.
        opening: symbols that stand in front of a sentence in the model's training.
        closing: the model's symbol for the side's ``</s>``, and the end of a sentence of a pair.
        padding: its padding symbol.
        unknown: its symbol for a word it does not know; None: it has none, and unknown words are an error.

    Attributes:
        side: the model's id for each id of the side's dictionary; None: they are the same.
        keeps_case: False if its symbols lack the capitals of the text that they were made from.
    """

    keeps_case: bool = True
    codes: Tensor
    side: Tensor | None

    def __init__(
        self,
        symbols: Sequence[str],
        *,
        opening: Sequence[str] = (EOS,),
        closing: str = EOS,
        padding: str = PAD,
        unknown: str | None = UNK,
    ) -> None:
        super().__init__()
        self.symbols = list(symbols)
        self.index = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.opening = [self._index_of(symbol) for symbol in opening]
        self.closing = self._index_of(closing)
        self.padding_idx = self._index_of(padding)
        self.unknown = None if unknown is None else self._index_of(unknown)
        self.register_buffer("codes", encode_symbols(self.symbols))
        self.register_buffer("side", None, persistent=False)

    def __len__(self) -> int:
        return len(self.symbols)

    def _index_of(self, symbol: str) -> int:
        if symbol not in self.index:
            raise InputError(f"the language model has no symbol {symbol} among its {len(self.symbols)}.")
        return self.index[symbol]

    @property
    def hash(self) -> str:
        """Return the SHA-256 (hex) of the symbols."""
        return dictionary_hash(self.symbols)

    def serve(self, symbols: Sequence[str], *, what: str, by_symbol: bool = False) -> float:
        """Accept the ids of a side's dictionary from now on.

        Args:
            symbols: of the side's dictionary, in index order.
            what: name of that dictionary for messages, e.g. "the source dictionary".
            by_symbol: look up every symbol (word vectors); else both must have the same symbols at the same indices,
                and the model may have further ones behind them (a ``<mask>``).

        Returns:
            The share (0..1) of the side's symbols, special ones left out, that the model knows.

        Raises:
            InputError: naming the first symbol that differs, or that an unknown symbol is needed and there is none.
        """
        if not by_symbol:
            check_symbols(self.symbols[: len(symbols)], list(symbols), what=what)
            self.side = None
            return 1.0
        special = {BOS: self.closing, EOS: self.closing, PAD: self.padding_idx, UNK: self.unknown}
        found = [self.index.get(symbol, special.get(symbol, self.unknown)) for symbol in symbols]
        if None in found:
            missing = symbols[found.index(None)]
            raise InputError(f"{what} has {missing!r}, which the language model has no vector for, and none for <unk>.")
        self.side = torch.tensor(found, device=self.codes.device)
        # fairseq fills a dictionary up with words of this name, which stand in no text.
        words = [symbol for symbol in symbols if symbol not in special and not symbol.startswith("madeupword")]
        return sum(symbol in self.index for symbol in words) / max(1, len(words))

    def ids(self, tokens: Tensor) -> Tensor:
        """Turn the side's ids (any shape) into the model's; the same tensor where the dictionaries are equal."""
        return tokens if self.side is None else self.side[tokens]

    def frame(self, words: Tensor) -> Framed:
        """Put the opening symbols in front of rows.

        Args:
            words: B x T ids of the model, left-aligned (padding at the right), each row ending in the closing symbol.

        Returns:
            B x (opening + T) ids, and the positions of the rows' own tokens.
        """
        if not self.opening:
            return Framed(words, slice(0, None))
        front = words.new_tensor(self.opening).expand(words.size(0), -1)
        return Framed(torch.cat([front, words], dim=1), slice(len(self.opening), None))

    def pair(self, first: Tensor, second: Tensor) -> Tensor:
        """Join two sentences (T1 and T2 ids) into one row of ids: opening, first, closing, second, closing."""
        closing = first.new_tensor([self.closing])
        return torch.cat([first.new_tensor(self.opening), first, closing, second, closing])

    def encode(self, text: str) -> Tensor:
        """Turn text into framed ids, 1 x T: its symbols stand between white space.

        Raises:
            InputError: naming a symbol that is not known, where the model has none for such.
        """
        found = [self.index.get(symbol, self.unknown) for symbol in text.split()]
        if None in found:
            raise InputError(f"{text.split()[found.index(None)]!r} is none of the language model's symbols.")
        return self.frame(torch.tensor([[*found, self.closing]])).tokens

    def decode(self, tokens: Tensor) -> str:
        """Turn ids (T, or 1 x T) back into text: symbols with spaces between, without frame and padding.

        Raises:
            InputError: if an id is outside the vocabulary.
        """
        hidden = {*self.opening, self.closing, self.padding_idx}
        ids = tokens.flatten().tolist()
        wrong = [number for number in ids if not 0 <= number < len(self.symbols)]
        if wrong:
            raise InputError(f"{wrong[0]} is no index of the language model's {len(self.symbols)} symbols.")
        return " ".join(self.symbols[number] for number in ids if number not in hidden)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        stored = state_dict.get(prefix + "codes")
        if stored is not None and not _same(stored, self.codes):
            check_symbols(decode_symbols(stored), self.symbols, what="the dictionary of this data")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def _same(stored: Tensor, codes: Tensor) -> bool:
    """Compare codes without decoding, which takes long where --store-ema loads weights at every update."""
    return stored.dtype == codes.dtype and torch.equal(stored.to(codes.device), codes)


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


def check_symbols(trained: Sequence[str], given: Sequence[str], *, what: str) -> None:
    """Refuse a dictionary that is not the one the language model was trained with.

    Args:
        trained: the language model's symbols.
        given: the symbols of the data or of the side the model is used on.
        what: name of the given dictionary for the message, e.g. "the source dictionary".

    Raises:
        InputError: naming the first index and the two symbols that differ.
    """
    index = first_difference(trained, given)
    if index is None:
        return
    ours = repr(trained[index]) if index < len(trained) else "nothing (it ends there)"
    theirs = repr(given[index]) if index < len(given) else "nothing (it ends there)"
    raise InputError(
        f"{what} is not the dictionary the language model was trained with: they differ first at "
        f"index {index}, where the language model has {ours} and {what} has {theirs} "
        f"({len(trained)} and {len(given)} symbols). Encode the data with the language model's BPE "
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
