"""The integration ``attend``: every layer attends to the source LM (Zhu et al. 2020, arXiv 2002.06823, section 4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.fusion.interface import DECODER, ENCODER, Fusion, Place, Side, register_fusion
from lmfusion.lm.interface import TOP, IncrementalState, LMStates, PretrainedLM

BOTH = "both"
DROPNET = 1.0
"""The rate of Zhu et al. 2020: in a training step each layer uses one of its two attentions alone."""
_PLACES = {ENCODER: "self", DECODER: "cross"}
"""The attention of each stack that attention to the language model is averaged with."""


@dataclass
class AttendConfig:
    """Flags of the integration ``attend``."""

    attend_in: str | None = field(
        default=None, metadata={"help": "attend: whose layers attend to the LM: encoder, decoder or both (default)"}
    )
    attend_dropnet: float | None = field(
        default=None,
        metadata={"help": f"attend: probability that a layer uses one attention alone in a step (default: {DROPNET})"},
    )


class _Carried:
    """A place for the language model's states of the batch being computed, between the integration and the layers."""

    def __init__(self) -> None:
        self.states: Tensor | None = None
        self.padding: Tensor | None = None


class AveragedAttention(nn.Module):
    """A layer's own attention averaged with attention of the same queries to the language model's states.

    In training, with a probability of ``dropnet`` one of the two, each as often as the other, stands alone (drop-net,
    Zhu et al. 2020, section 4.2). Both are computed always, so that every parameter has a gradient in every process.

    Args:
        own: fairseq's attention module that was in the layer.
        channels: C of the language model's states.
        dropnet: a probability.
        carried: where the states are found.
    """

    def __init__(self, own: MultiheadAttention, channels: int, dropnet: float, carried: _Carried) -> None:
        super().__init__()
        self.own = own
        self.to_lm = MultiheadAttention(
            own.embed_dim,
            own.num_heads,
            kdim=channels,
            vdim=channels,
            dropout=own.dropout_module.p,
            encoder_decoder_attention=True,
        )
        self.dropnet = dropnet
        self._carried = carried

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        incremental_state: IncrementalState | None = None,
        **settings: Any,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq's module does.

        Args:
            query: T x B x C.
            key: of the layer's own attention, as ``value``: S x B x C.
            value: see ``key``.
            incremental_state: fairseq's decoding state, in which both attentions keep keys and values.
            settings: further arguments of the layer's own attention.

        Returns:
            T x B x C, and the own attention's weights where they are asked for.
        """
        x, weights = self.own(query, key, value, incremental_state=incremental_state, **settings)
        assert self._carried.states is not None
        states = self._carried.states.transpose(0, 1)  # B x S x C -> S x B x C
        y, _ = self.to_lm(
            query,
            states,
            states,
            key_padding_mask=self._carried.padding,
            incremental_state=incremental_state,
            need_weights=False,
            static_kv=incremental_state is not None,
        )
        share = self._share()
        return share * x + (1.0 - share) * y, weights

    def _share(self) -> float:
        """Return the share of the layer's own attention in this step: 0, 1/2 or 1."""
        if not self.training or self.dropnet == 0.0:
            return 0.5
        # Of the CPU's random numbers, for which no GPU is waited; they are set back where layers are computed again.
        drawn = float(torch.rand(()))
        if drawn < self.dropnet / 2:
            return 1.0
        return 0.0 if drawn > 1.0 - self.dropnet / 2 else 0.5


@register_fusion("attend")
class AttendFusion(Fusion):
    """BERT-fused attention: every layer attends to the top state of the frozen source LM, too (Zhu et al. 2020).

    In the encoder it is averaged with self-attention, in the decoder with attention to the encoder. Encoder and decoder
    keep their own word embeddings.

    Raises:
        InputError: if the language model has no single top state.
    """

    Config = AttendConfig
    title = "attention to the frozen LM's top state in every layer"
    sides = ("src",)
    replaces_embeddings = False

    def __init__(self, lm: PretrainedLM, side: Side, config: AttendConfig) -> None:
        lm.check_top_state()
        super().__init__(lm.freeze(), side, config)
        self.attend_in = config.attend_in or BOTH
        self.dropnet = DROPNET if config.attend_dropnet is None else config.attend_dropnet
        self._carried = _Carried()

    @classmethod
    def check(cls, config: AttendConfig, flag: Callable[[str], str], run: Any) -> None:
        """Refuse a place that does not exist, or what is no probability; see :meth:`Fusion.check`.

        Raises:
            InputError: naming the flag.
        """
        if config.attend_in not in (None, BOTH, *_PLACES):
            raise InputError(f"{flag('attend_in')} {config.attend_in}: give {', '.join(_PLACES)} or {BOTH}.")
        if config.attend_dropnet is not None and not 0.0 <= config.attend_dropnet <= 1.0:
            raise InputError(f"{flag('attend_dropnet')} {config.attend_dropnet:g}: give a probability from 0 to 1.")

    def configure(self, model_config: Any) -> None:
        """Refuse a decoder whose layers are to attend to the language model and to no source; see the base class.

        Raises:
            InputError: naming the flags.
        """
        if self.attend_in != ENCODER and getattr(model_config, "no_cross_attention", False):
            raise InputError(
                f"--src-attend-in {self.attend_in} would be ignored in the decoder: --no-cross-attention leaves no "
                f"attention to average with. Leave out --no-cross-attention, or give --src-attend-in {ENCODER}."
            )

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> LMStates:
        """Return the frozen language model's top state; see :meth:`Fusion.read`."""
        with torch.no_grad():
            return self.lm.states(tokens, incremental_state, want={TOP})

    def attention(self, own: nn.Module, place: Place) -> nn.Module:
        """Return an :class:`AveragedAttention` where a layer attends to the language model; see the base class."""
        if self.attend_in not in (BOTH, place.stack) or _PLACES[place.stack] != place.kind:
            return own
        assert isinstance(own, MultiheadAttention)
        return AveragedAttention(own, self.lm.embed_dim, self.dropnet, self._carried)

    def carry(self, states: LMStates) -> list[Tensor]:
        """Return the top state, B x T x C."""
        assert states.top is not None
        return [states.top]

    def receive(self, carried: list[Tensor], padding: Tensor) -> None:
        """Keep the top states (B x S x C) and their padding (B x S) for the layers."""
        (self._carried.states,), self._carried.padding = carried, padding

    def name_without(self, name: str) -> str | None:
        """Return the name of a layer's own attention; attention to the LM is the integration's; see the base class."""
        return None if ".to_lm." in name else name.replace(".own.", ".")
