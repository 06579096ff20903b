"""A family: a random vector for every word of a list. What a language model is worth can be told beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lmfusion.lm.interface import LMStates, PretrainedLM, register_lm
from lmfusion.lm.vocabulary import Vocabulary


@dataclass
class RandomVectorsConfig:
    """What an untrained copy is built from."""

    channels: int = 16
    seed: int = 1


@register_lm("random_vectors")
class RandomVectors(PretrainedLM):
    """One state: the vectors. No word changes another's, so either side may use it."""

    Config = RandomVectorsConfig
    title = "table of random vectors"
    sees_future = False
    incremental = True
    by_symbol = True  # the side's dictionary is looked up word by word

    def __init__(self, config: RandomVectorsConfig, vocabulary: Vocabulary) -> None:
        super().__init__(config, vocabulary)
        self.embed_dim = self.state_dim = config.channels
        self.state_names = ["vectors"]
        self.token_embedding = nn.Embedding(len(vocabulary), config.channels, vocabulary.padding_idx)
        nn.init.normal_(self.token_embedding.weight, generator=torch.Generator().manual_seed(config.seed))

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return whether this is a list of words."""
        return path.suffix == ".words"

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> RandomVectors:
        """Read the words, one a line."""
        words = path.read_text(encoding="utf-8").split()
        lm = cls.build({}, ["<s>", "<pad>", "</s>", "<unk>", *words], **overrides)
        assert isinstance(lm, RandomVectors)
        return lm

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return a vocabulary without symbols around a sentence."""
        return Vocabulary(symbols, opening=())

    def states(self, tokens: Any, incremental_state: Any = None, *, want: Any) -> LMStates:
        """Look the vectors up: B x T -> B x T x C; in decoding those of the last token."""
        x = self.token_embedding(tokens if incremental_state is None else tokens[:, -1:])
        return LMStates([x], self.state_names, x)

    def max_positions(self) -> int:
        """Return the longest sentence: there is no limit of its own."""
        return 1_000_000
