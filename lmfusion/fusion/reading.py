"""How a side reads its language model: models converted from the paper's released code may have ways of their own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from lmfusion.lm.interface import WIDE, PretrainedLM
from lmfusion.lm.transformer.layout import shift_left, shift_right


@dataclass(frozen=True)
class StateList:
    """Which states of a cloze LM (or of a pair of LMs) a mix is made of.

    The released code mixes the states of both towers apart where the language model stands in the decoder.

    Attributes:
        paired: concatenate the two towers' states of a layer (2C channels); else they are two states of C channels.
        context: add the neighbours' joined states, ``[join[i-1]; join[i+1]]``; of a pair of LMs, which has no joining
            block, those of the backward tower.
        joined: add the joining block's output.
    """

    paired: bool
    context: bool
    joined: bool

    def __call__(self, lm: PretrainedLM, tokens: Tensor, states: list[Tensor]) -> list[Tensor]:
        """The list to mix.

        Args:
            lm: whose states they are.
            tokens: B x T.
            states: all of them, paired, as :meth:`PretrainedLM.layer_states` gives them: B x T x 2C.

        Returns:
            B x T x 2C each if ``paired``, else B x T x C.
        """
        layers, rest = states[: 1 + lm.num_layers], states[1 + lm.num_layers :]
        single = layers[0][..., : lm.embed_dim]
        if self.context:
            layers = [*layers, rest[0] if rest else _neighbours(layers[-1][..., lm.embed_dim :], lm, tokens)]
        if not self.paired:
            layers = [single, *(half for state in layers[1:] for half in state.split(lm.embed_dim, dim=-1))]
        if self.joined:
            layers = [*layers, rest[-1] if self.paired else rest[-1][..., : lm.embed_dim]]
        return layers

    def names(self, num_layers: int) -> list[str]:
        """Names of the states, in order, of a language model with this many layers."""
        layers = [f"layer {number}" for number in range(1, num_layers + 1)] + (["context"] if self.context else [])
        if not self.paired:
            layers = [f"{name} {way}" for name in layers for way in ("forward", "backward")]
        return ["embedding", *layers, *(["joined"] if self.joined else [])]

    def state_dim(self, lm: PretrainedLM) -> int:
        """C', channels of each state."""
        return lm.embed_dim * (2 if self.paired else 1)


def _neighbours(state: Tensor, lm: PretrainedLM, tokens: Tensor) -> Tensor:
    """``[state[i-1]; state[i+1]]`` with zeros beyond the sentence's ends, on whichever side its padding stands."""
    state = state.masked_fill(tokens.eq(lm.padding_idx).unsqueeze(-1), 0.0)
    return torch.cat([shift_right(state), shift_left(state)], dim=-1)


@dataclass(frozen=True)
class Reading:
    """The defaults are lmfusion's own way.

    Attributes:
        leading_eos: on the source side, put the </s> before the sentence that the LM was pretrained with.
        top: what :meth:`PretrainedLM.top_state` of a cloze LM is; see :data:`lmfusion.lm.interface.TOPS`.
        states: what ELMo mixes; None stands for all the LM gives.
    """

    leading_eos: bool = True
    top: str = WIDE
    states: StateList | None = None

    @classmethod
    def from_description(cls, description: Mapping[str, Any]) -> Reading:
        """From what a checkpoint's config says of a side's language model."""
        values = dict(description.get("reading") or {})
        if values.get("states") is not None:
            values["states"] = StateList(**values["states"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for a checkpoint's config."""
        return asdict(self)
