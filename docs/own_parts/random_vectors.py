"""A family: a random vector for every word of a list. What a language model is worth can be told beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from lmfusion.errors import InputError
from lmfusion.lm.decoding import unseen_tokens
from lmfusion.lm.interface import LAYERS, TOP, LMStates, PretrainedLM, register_lm
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
        return path.suffix == ".words" and path.is_file()

    @classmethod
    def read(cls, path: Path, **overrides: Any) -> RandomVectors:
        """Read the words, one a line."""
        try:
            words = path.read_text(encoding="utf-8").split()
        except UnicodeDecodeError as error:
            raise InputError(f"{path} is not UTF-8 (byte {error.start}): save it as such.") from error
        lm = cls.build({}, ["<s>", "<pad>", "</s>", "<unk>", *words], **overrides)
        assert isinstance(lm, RandomVectors)
        return lm

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return a vocabulary without symbols around a sentence."""
        return Vocabulary(symbols, opening=())

    def states(self, tokens: Any, incremental_state: Any = None, *, want: Any) -> LMStates:
        """Look the vectors up: B x T -> B x T x C; in decoding those of the tokens not seen before."""
        x = self.token_embedding(unseen_tokens(tokens, incremental_state, "random_vectors"))
        found = LMStates(top=x if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = [x], self.state_names
        return found

    def max_positions(self) -> int:
        """Return the longest sentence: there is no limit of its own."""
        return 1_000_000
