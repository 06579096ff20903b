"""The family ``causal``: a left-to-right transformer with a cache for decoding (SPEC section 1)."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Set as AbstractSet
from typing import Any

import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import (
    FairseqIncrementalDecoder,
    register_model,
    register_model_architecture,
)
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.interface import LAYERS, TOP, Head, IncrementalState, LMStates, register_lm
from lmfusion.lm.stack import Stack
from lmfusion.lm.transformer.as_stack import tower_stack
from lmfusion.lm.transformer.attention import NO_BIAS_KV, CausalSelfAttention
from lmfusion.lm.transformer.base import TrainableLM, TransformerLM, check_lm_task
from lmfusion.lm.transformer.config import CausalLMConfig, big_architecture, plain_config
from lmfusion.lm.transformer.layout import RowLayout, layout_of


@register_lm("causal")
class CausalLM(TransformerLM, FairseqIncrementalDecoder):
    """A unidirectional language model: one left-to-right tower that predicts the next token (SPEC section 1).

    Args:
        config: plain values of :class:`CausalLMConfig`.
        dictionary: of the text.
    """

    Config = CausalLMConfig
    title = "causal language model"
    architecture = "uni_transformer_lm"
    pooling = "last"
    sees_future = False
    incremental = True

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        FairseqIncrementalDecoder.__init__(self, dictionary)
        self._build_common(config, dictionary)
        self.layers = self._build_tower(NO_BIAS_KV)
        self.state_dim = self.embed_dim
        self.state_names = ["embedding", *(f"layer {number}" for number in range(1, self.num_layers + 1))]

    def forward(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any | None = None,
        incremental_state: IncrementalState | None = None,
        src_lengths: Tensor | None = None,
        head: Head = F.linear,
        **_: Any,
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the logits of the next token at every position.

        Args:
            prev_output_tokens: B x T, ``</s> w1 ... wn`` with padding on either side.
            encoder_out: always None; fairseq's generator passes it.
            incremental_state: fairseq's decoding state; see :meth:`states`.
            src_lengths: unused; fairseq passes it.
            head: function that makes logits, or something else, of states (B x T x C) and output embeddings (V x C).

        Returns:
            B x T x V (only new T with a decoding state), or what the head makes; and a dictionary without attention.
        """
        # fairseq's generator asks for attention to a source, where there is none.
        top = self.states(prev_output_tokens, incremental_state, want={TOP}).top
        assert top is not None
        return self.output_layer(top, head), {"attn": None}

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute the TGT-ELMO list (SPEC section 2): embeddings and N layers, each B x T x C; the top is the last one.

        No layer norm follows the last layer. With ``incremental_state`` rows must have no padding, as in fairseq's beam
        search; only states of tokens behind the cached ones are computed and returned.
        """
        if incremental_state is not None:
            layers = self._continue(tokens, incremental_state)
        else:
            x, states, layout = self._run_layers(tokens)
            wanted = [x, *states] if LAYERS in want else states[-1:]
            # Embeddings are not packed, the layers are.
            layers = [layout.restore(state if state is x else layout.unpack(state)) for state in wanted]
        found = LMStates(top=layers[-1] if TOP in want else None)
        if LAYERS in want:
            found.layers, found.names = layers, self.state_names
        return found

    def _continue(self, tokens: Tensor, incremental_state: IncrementalState) -> list[Tensor]:
        """Return embeddings and layers of the tokens behind the cached ones."""
        self.check_length(tokens.size(1))
        seen = self._first_attention.cached_length(incremental_state)
        x = self.embed(tokens[:, seen:], offset=seen)
        return [x, *self.layers(x, incremental_state)]

    def _run_layers(self, tokens: Tensor) -> tuple[Tensor, list[Tensor], RowLayout]:
        """Return the embeddings of left-aligned rows, the N layers' states as the layout packs them, and the layout."""
        layout = layout_of(tokens, self.padding_idx)
        self.check_rows(layout)
        x = self.embed(layout.align(tokens))
        return x, self.layers(layout.pack(x), layout=layout), layout

    def stack(self) -> Stack:
        """Return the tower, which no layer norm follows."""
        return tower_stack(self, self.layers)

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each block: N + 1 lists."""
        return [[self.embed], *([block] for block in self.layers)]

    @property
    def _first_attention(self) -> CausalSelfAttention:
        attention = self.layers[0].self_attn
        assert isinstance(attention, CausalSelfAttention)
        return attention


@register_model("uni_transformer_lm", dataclass=CausalLMConfig)
class UniTransformerLanguageModel(TrainableLM):
    """The fairseq model ``uni_transformer_lm`` around a :class:`CausalLM` (``--sample-break-mode eos``)."""

    decoder: CausalLM

    @classmethod
    def build_model(cls, cfg: CausalLMConfig, task: Any) -> UniTransformerLanguageModel:
        """Build an untrained model for fairseq's ``language_modeling`` task.

        Args:
            cfg: the flags.
            task: brings the dictionary and the targets.

        Raises:
            InputError: if the task asks for other targets than the next token, or translates.
        """
        check_lm_task(task)
        targets = list(getattr(task, "targets", ["future"]))
        if targets != ["future"]:
            given = " ".join(f"--{target}-target" for target in targets)
            raise InputError(
                f"uni_transformer_lm predicts the next token and would see what {given} asks for: "
                f"leave that out, or train bi_transformer_lm."
            )
        return cls(CausalLM(plain_config(cfg, CausalLMConfig), task.target_dictionary)).follow(cfg)

    @property
    def supported_targets(self) -> set[str]:
        """Return fairseq's names of the targets that the model can predict: the next token alone."""
        return {"future"}


@register_model_architecture("uni_transformer_lm", "uni_transformer_lm_big")
def uni_transformer_lm_big(args: Namespace) -> None:
    """Set the published size: 190M parameters with tied embeddings and a vocabulary size of 37K."""
    big_architecture(args)
