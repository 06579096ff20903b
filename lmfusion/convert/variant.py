"""Language models of converted checkpoints, read in a way of the paper's released code: a family of their own."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from fairseq.data import Dictionary
from torch import Tensor
from typing_extensions import Self

from lmfusion.lm.cloze import ClozeLM
from lmfusion.lm.interface import LAYERS, TOP, IncrementalState, LMStates, register_lm
from lmfusion.lm.old_checkpoints import RELEASED
from lmfusion.lm.transformer.layout import layout_of, shift_left, shift_right
from lmfusion.lm.vocabulary import EOS, Vocabulary

SEES_SELF, HIDES_SELF, FORWARD = "wide", "narrow", "forward"
"""What the top state is: the joining block's output with the token itself visible, as in pretraining with the token
hidden, or (of a pair of LMs, which has no joining block) the forward tower's."""


@dataclass(frozen=True)
class StateList:
    """Select the states of a cloze LM (or of a pair of LMs) that a mix is made of.

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

    def select(self, states: list[Tensor], num_layers: int, padding: Tensor) -> list[Tensor]:
        """Select the list to mix.

        Args:
            states: all of them, paired: L tensors of B x T x 2C.
            num_layers: N of a tower.
            padding: B x T, True at padding.

        Returns:
            B x T x 2C each if ``paired``, else B x T x C.
        """
        layers, rest = states[: 1 + num_layers], states[1 + num_layers :]
        channels = layers[0].size(-1) // 2
        single = layers[0][..., :channels]
        if self.context:
            layers = [*layers, rest[0] if rest else _neighbours(layers[-1][..., channels:], padding)]
        if not self.paired:
            layers = [single, *(half for state in layers[1:] for half in state.split(channels, dim=-1))]
        if self.joined:
            layers = [*layers, rest[-1] if self.paired else rest[-1][..., :channels]]
        return layers

    def names(self, num_layers: int) -> list[str]:
        """Return the names of the states, in order, of a language model with this many layers."""
        layers = [f"layer {number}" for number in range(1, num_layers + 1)] + (["context"] if self.context else [])
        if not self.paired:
            layers = [f"{name} {way}" for name in layers for way in ("forward", "backward")]
        return ["embedding", *layers, *(["joined"] if self.joined else [])]


def _neighbours(state: Tensor, padding: Tensor) -> Tensor:
    """Return ``[state[i-1]; state[i+1]]`` with zeros beyond the sentence's ends, wherever its padding stands."""
    state = state.masked_fill(padding.unsqueeze(-1), 0.0)
    return torch.cat([shift_right(state), shift_left(state)], dim=-1)


@dataclass(frozen=True)
class LMOutputSpec:
    """Say which states of a language model a side uses; the defaults are lmfusion's own.

    Attributes:
        leading_eos: on the source side, put the </s> before the sentence that the LM was pretrained with.
        top: what the top state of a cloze LM is: :data:`SEES_SELF`, :data:`HIDES_SELF` or :data:`FORWARD`.
        states: what ELMo mixes; None stands for all the LM gives.
    """

    leading_eos: bool = True
    top: str = SEES_SELF
    states: StateList | None = None

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> LMOutputSpec:
        """Invert :meth:`to_dict`."""
        values = dict(values)
        if values.get("states") is not None:
            values["states"] = StateList(**values["states"])
        return cls(**values)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for a checkpoint's config."""
        return asdict(self)


@register_lm(RELEASED)
class ReleasedLM(ClozeLM):
    """A cloze LM, or a pair of LMs, whose ``reading`` in the config says what its states are."""

    structure = (*ClozeLM.structure, "reading")

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        super().__init__(config, dictionary)
        self.output_spec = LMOutputSpec.from_dict(config["reading"])
        if self.output_spec.states is not None:
            self.state_names = self.output_spec.states.names(self.num_layers)
            self.state_dim = self.embed_dim * (2 if self.output_spec.states.paired else 1)

    @classmethod
    def can_read(cls, path: Path) -> bool:
        """Return False: such a model is found inside sequence-to-sequence models only."""
        return False

    @classmethod
    def make_vocabulary(cls, config: dict[str, Any], symbols: list[str]) -> Vocabulary:
        """Return the vocabulary with the symbol in front of a sentence that the model is used with."""
        return Vocabulary(symbols, opening=(EOS,) if config["reading"]["leading_eos"] else ())

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute the states that are used, of all positions (there is no cache); see :meth:`ClozeLM.states`."""
        found = LMStates()
        if LAYERS in want:
            found = super().states(tokens, want={LAYERS})
            if self.output_spec.states is not None:
                padding = tokens.eq(self.padding_idx)
                found.layers = self.output_spec.states.select(found.layers, self.num_layers, padding)
                found.names = self.state_names
        if TOP in want:
            found.top = self._top(tokens)
        return found

    def _top(self, tokens: Tensor) -> Tensor:
        layout = layout_of(tokens, self.padding_idx)
        forward, backward = self._tops(layout.align(tokens), layout)
        if self.output_spec.top == FORWARD:
            return layout.restore(forward)
        sees_self = self.output_spec.top == SEES_SELF
        return layout.restore(self._joined(forward, backward, layout, include_self=sees_self))

    def unfreeze(self) -> Self:
        """Make the weights trainable, but for a tower that the top state does not stand on.

        It would get no gradients, which DistributedDataParallel refuses of a trainable weight.
        """
        super().unfreeze()
        if self.output_spec.top == FORWARD and self.backward_layers is not None:
            self.backward_layers.requires_grad_(False)
        return self

    def check_top_state(self) -> None:
        """Refuse a pair of language models of which the forward tower is not the top."""
        if self.output_spec.top != FORWARD:
            super().check_top_state()


def names_not_kept(lm: Mapping[str, Any], count: int) -> list[str]:
    """Return the names of the states in a checkpoint written before it kept them.

    Args:
        lm: the description of the language model, in the terms of today.
        count: L, number of layer states.
    """
    if lm.get("family") == RELEASED and lm["reading"].get("states"):
        return StateList(**lm["reading"]["states"]).names(lm["decoder_layers"])
    joined = lm.get("family") in ("cloze", RELEASED) and "self" in lm.get("targets", ["self"])
    last = ["context", "joined"] if joined else []
    return ["embedding", *(f"layer {number}" for number in range(1, count - len(last))), *last]
