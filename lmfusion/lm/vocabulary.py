"""Keep the symbols of a language model inside its weights, and check the dictionary of a side against them.

A model is useless with another dictionary, and a wrong one is hard to notice: every index is valid. So the symbols
travel in the state dict, as the code points of the symbols joined by newlines, and loading into a model of another
dictionary is an error that names the first symbol that differs. Integers survive half precision and averaging.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.symbols import check_symbols, decode_symbols, dictionary_hash, encode_symbols, plain_word
from lmfusion.text.codec import TextCodec

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
        separators: number of closing symbols between the texts of a pair.
        keeps_case: False if its symbols lack the capitals of the text that they were made from.
        takes_codec: False if it brings a tokenizer of its own.
        codec: makes its symbols of plain text; None: text is symbols between white space.
    """

    separators: int = 1
    keeps_case: bool = True
    takes_codec: bool = True
    codec: TextCodec | None = None
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

    def is_padding(self, ids: Tensor) -> Tensor:
        """Tell where the ids that the model's token embedding reads, B x T, are padding."""
        return ids.eq(self.padding_idx)

    def pair(self, first: Tensor, second: Tensor) -> Tensor:
        """Join two sentences (T1 and T2 ids) into one row of ids: opening, first, separators, second, closing."""
        closing = first.new_tensor([self.closing])
        return torch.cat([first.new_tensor(self.opening), first, *[closing] * self.separators, second, closing])

    def encode(self, text: str) -> Tensor:
        """Turn text into framed ids, 1 x T: plain text, or without a :attr:`codec` symbols between white space.

        Raises:
            InputError: if it is no text, plain text without a codec, or has a symbol that is not known and there is
                none for such.
        """
        if not isinstance(text, str):
            raise InputError(f"{text!r:.60} is a {type(text).__name__}: a sentence is text (str).")
        symbols = (text if self.codec is None else self.codec.encode(text)).split()
        if self.codec is None and (word := plain_word(symbols, self.index)) is not None:
            raise InputError(
                f"{word!r} is none of the language model's symbols, which are pieces of words, and it holds no BPE: "
                f'give text that is encoded already, or in Python the BPE: load_lm(path, bpe="spm.model", lang="en").'
            )
        found = [self.index.get(symbol, self.unknown) for symbol in symbols]
        if None in found:
            raise InputError(f"{symbols[found.index(None)]!r} is none of the language model's symbols.")
        return self.frame(torch.tensor([[*found, self.closing]])).tokens

    def decode(self, tokens: Tensor) -> str:
        """Turn ids (T, or 1 x T) back into text, without frame and padding; without a :attr:`codec` into symbols.

        Raises:
            InputError: if it is more than one row, or an id is outside the vocabulary.
        """
        row = self.check(tokens.unsqueeze(0) if isinstance(tokens, Tensor) and tokens.dim() == 1 else tokens)
        if len(row) > 1:
            raise InputError(f"these are {len(row)} sentences: decode one at a time.")
        hidden = {*self.opening, self.closing, self.padding_idx}
        symbols = " ".join(self.symbols[number] for number in row[0].tolist() if number not in hidden)
        return symbols if self.codec is None else self.codec.decode(symbols)

    def check(self, tokens: Tensor) -> Tensor:
        """Return rows of ids as they are, if they are B x T indices of this vocabulary.

        Raises:
            InputError: naming the shape, the type or the first number that is none.
        """
        what = f"{tuple(tokens.shape)} of {tokens.dtype}" if isinstance(tokens, Tensor) else type(tokens).__name__
        if not isinstance(tokens, Tensor) or tokens.dim() != 2 or tokens.dtype not in (torch.int64, torch.int32):
            raise InputError(f"tokens are B x T indices (int64), as encode(text) gives them, and this is {what}.")
        if not tokens.numel():
            raise InputError(f"there is no token in a tensor of {tuple(tokens.shape)}: give at least one.")
        wrong = tokens[(tokens < 0) | (tokens >= len(self.symbols))]
        if wrong.numel():
            raise InputError(f"{int(wrong[0])} is no index of the language model's {len(self.symbols)} symbols.")
        return tokens

    def make_room(self, weights: Mapping[str, Tensor], prefix: str) -> None:
        """Make room for what only the weights of a checkpoint tell the size of; there is nothing of this kind here.

        Args:
            weights: by name.
            prefix: of this vocabulary's.
        """

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any) -> None:
        stored = state_dict.get(prefix + "codes")
        if stored is not None and not _same(stored, self.codes):
            check_symbols(decode_symbols(stored), self.symbols, what="the dictionary of this data")
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)


def _same(stored: Tensor, codes: Tensor) -> bool:
    """Compare codes without decoding, which takes long where --store-ema loads weights at every update."""
    return stored.dtype == codes.dtype and torch.equal(stored.to(codes.device), codes)
