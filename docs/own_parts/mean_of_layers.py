"""An integration: the plain mean of the frozen language model's layers. What learning the mix is worth can be told."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.fusion.interface import Fusion, Side, register_fusion
from lmfusion.lm.interface import LAYERS, LMStates, PretrainedLM


@dataclass
class MeanConfig:
    """Flags, ``--src-mean-scale`` and ``--tgt-mean-scale``; None where they are not given."""

    mean_scale: float | None = field(default=None, metadata={"help": "mean: factor on the mean (default: 1)"})


@register_fusion("mean")
class MeanOfLayers(Fusion):
    """``scale * W mean(layers)`` in the place of the word embeddings; W is learned."""

    Config = MeanConfig
    title = "plain mean of the frozen LM's layers"
    carries_positions = True

    def __init__(self, lm: PretrainedLM, side: Side, config: MeanConfig) -> None:
        super().__init__(lm.freeze(), side, config)
        self.projection = nn.Linear(lm.state_dim, side.width, bias=False)
        self.scale = 1.0 if config.mean_scale is None else config.mean_scale

    def read(self, tokens: Tensor, incremental_state: Any = None) -> LMStates:
        """Read all layers of the frozen model."""
        with torch.no_grad():
            return self.lm.states(tokens, incremental_state, want={LAYERS})

    def embed(self, states: LMStates) -> Tensor:
        """Take the mean and project it: L x B x T x C' -> B x T x C."""
        mean: Tensor = self.projection(torch.stack(states.layers).mean(0))
        return self.scale * mean
