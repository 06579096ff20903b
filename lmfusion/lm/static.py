"""The family ``static``: one vector for every word, from a file of word2vec, fastText or GloVe."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.decoding import unseen_tokens
from lmfusion.lm.interface import LAYERS, TOP, IncrementalState, LMStates, PretrainedLM, register_lm
from lmfusion.lm.vector_files import read_vectors, recognize
from lmfusion.lm.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

_SPECIAL = (BOS, PAD, EOS, UNK)
_NO_LIMIT = 1_000_000


@dataclass
class StaticConfig:
    """Values from which an untrained copy is built.

    Attributes:
        channels: C, numbers of a vector.
    """

    channels: int = 100


@register_lm("static")
class StaticVectors(PretrainedLM):
    """A table of word vectors: one state, which no other word changes, so that it fits on either side.

    A side's symbols are looked up by name, and only their vectors are kept, a row for each, as in fairseq's embeddings.
    A symbol without a vector starts with that of ``<unk>``; where the file has none, that is the mean of all vectors.
    ``<s>`` and ``</s>`` start at zero unless the file has them, and ``<pad>`` is zero.

    Args:
        config: the width.
        vocabulary: the words.

    Raises:
        InputError: if the width is no positive number.
    """

    Config = StaticConfig
    title = "table of word vectors"
    sees_future = False
    incremental = True
    by_symbol = True
    ordered = False
    token_embedding: nn.Embedding

    def __init__(self, config: StaticConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        if not isinstance(config.channels, int) or config.channels < 1:
            raise InputError(f"a table of word vectors cannot have {config.channels!r} channels.")
        self.embed_dim = self.state_dim = config.channels
        self.state_names = ["vectors"]
        self._take(vocabulary, torch.zeros(len(vocabulary), config.channels))

    def _take(self, vocabulary: Vocabulary, vectors: Tensor) -> None:
        """Take other words and their vectors, V x C; no random number is drawn, as fairseq draws none here."""
        self.symbol_table = vocabulary
        vectors[vocabulary.padding_idx] = 0
        self.token_embedding = nn.Embedding.from_pretrained(
            vectors, freeze=self.frozen, padding_idx=vocabulary.padding_idx
        )

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return True if the file begins like one of word vectors."""
        return recognize(path) is not None

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> StaticVectors:
        """Read a file of word vectors; see :mod:`lmfusion.lm.vector_files`.

        Raises:
            InputError: naming the line that is wrong.
        """
        found = read_vectors(path)
        width = found.vectors.size(1)
        if overrides.get("channels") not in (None, width):
            raise InputError(f"{path} has vectors of {width} numbers, not of {overrides['channels']}.")
        index = {word: number for number, word in enumerate(found.words)}
        starts = {UNK: found.vectors.mean(dim=0)}
        special = [found.vectors[index[s]] if s in index else starts.get(s, torch.zeros(width)) for s in _SPECIAL]
        others = [number for number, word in enumerate(found.words) if word not in _SPECIAL]
        lm = cls(StaticConfig(width), Vocabulary([*_SPECIAL, *(found.words[number] for number in others)], opening=()))
        lm._take(lm.vocabulary, torch.cat([torch.stack(special), found.vectors[others]]))
        return lm

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return a vocabulary without symbols in front of a sentence."""
        return Vocabulary(symbols, opening=())

    def serve(self, symbols: list[str], *, what: str) -> float:
        """Keep the vectors of a side's symbols alone, in their order; return the share of symbols that have one.

        Raises:
            InputError: if none has.
        """
        if symbols == self.symbols:
            return 1.0
        known = super().serve(symbols, what=what)
        if not known:
            raise InputError(
                f"none of the {len(symbols)} symbols of {what} is among the {len(self.symbols)} words with a vector: "
                f"train the vectors on text that is encoded as the data are (lmfusion embed)."
            )
        rows = self.vocabulary.ids(torch.arange(len(symbols), device=self.vocabulary.codes.device))
        self._take(self.make_vocabulary(self.config, symbols), self.token_embedding.weight.detach()[rows])
        return known

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Look up the vectors, B x T x C, as the only layer and as the top; in decoding those of new tokens."""
        x = self.token_embedding(unseen_tokens(tokens, incremental_state, "static"))
        found = LMStates(top=x if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = [x], self.state_names
        return found

    def max_positions(self) -> int:
        """Return the longest sentence in tokens: there is no limit of its own."""
        return _NO_LIMIT
