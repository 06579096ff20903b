"""The family ``cloze``: a bidirectional transformer that predicts every token from all others (SPEC section 1).

Baevski et al. 2019, "Cloze-driven Pretraining of Self-attention Networks"; Edunov et al. 2019, section 3.2.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Set as AbstractSet
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, register_model, register_model_architecture
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.interface import LAYERS, TOP, Head, IncrementalState, LMStates, register_lm
from lmfusion.lm.several_targets import SeveralTargets
from lmfusion.lm.stack import Stack
from lmfusion.lm.transformer.as_stack import tower_stack
from lmfusion.lm.transformer.attention import LEARNED_BIAS_KV, NO_BIAS_KV, ZERO_BIAS_KV
from lmfusion.lm.transformer.base import TransformerLM, check_lm_task
from lmfusion.lm.transformer.config import ClozeLMConfig, big_architecture, plain_config
from lmfusion.lm.transformer.join import AttentionJoin, LinearJoin
from lmfusion.lm.transformer.layout import RowLayout, layout_of, shift_left, shift_right

TARGET_SETS = (["self"], ["future", "past"], ["self", "future", "past"])


@register_lm("cloze")
class ClozeLM(TransformerLM, FairseqDecoder):
    """A bidirectional language model: a forward and a backward tower, joined (SPEC section 1).

    Args:
        config: plain values of :class:`ClozeLMConfig`, and ``targets``: fairseq's names of what is predicted.
            ``["self"]`` is the cloze LM; ``["future", "past"]`` a pair of ordinary LMs, which has no joining block.
        dictionary: of the text.

    Raises:
        InputError: if targets or flags contradict each other.
    """

    Config = ClozeLMConfig
    title = "cloze language model"
    architecture = "bi_transformer_lm"
    structure: ClassVar[tuple[str, ...]] = ("targets",)
    sees_future = True
    incremental = False

    def __init__(self, config: dict[str, Any], dictionary: Dictionary) -> None:
        _check(config)
        FairseqDecoder.__init__(self, dictionary)
        self._build_common(config, dictionary)
        self.targets: list[str] = config["targets"]
        bias_kv = ZERO_BIAS_KV if config["no_bias_kv"] else LEARNED_BIAS_KV
        if config["no_extra_kv"]:
            bias_kv = NO_BIAS_KV
        self.forward_layers = self._build_tower(bias_kv)
        shared = config["single_tower"]
        self.backward_layers = None if shared else self._build_tower(bias_kv)
        self.join: nn.Module | None = self._build_join() if "self" in self.targets else None
        self.state_dim = 2 * self.embed_dim
        layers = [f"layer {number}" for number in range(1, self.num_layers + 1)]
        self.state_names = ["embedding", *layers, *(["context", "joined"] if self.join is not None else [])]

    @classmethod
    def described_by(cls, model: dict[str, Any], task: dict[str, Any]) -> dict[str, Any]:
        """Return the config that a checkpoint's flags stand for; see :meth:`TransformerLM.described_by`."""
        targets = [name for name in ("self", "future", "past") if task.get(f"{name}_target")]
        return {**model, "targets": targets or ["self"]}

    def _build_join(self) -> nn.Module:
        config = self.config
        if config["linear_final_layer"]:
            return LinearJoin(self.embed_dim, bias=config["linear_final_layer_bias"])
        return AttentionJoin(
            self.embed_dim,
            config["decoder_ffn_embed_dim"],
            config["decoder_attention_heads"] * (2 if config["double_final_heads"] else 1),
            concat_query=config["concat_final_q"],
            dropout=config["dropout"],
            attention_dropout=config["attention_dropout"],
            activation_dropout=config["activation_dropout"],
        )

    def tower_states(self, tokens: Tensor, layout: RowLayout) -> tuple[list[Tensor], list[Tensor]]:
        """Compute the states of both towers, in the order of the words.

        Args:
            tokens: B x T, left-aligned.
            layout: of the batch.

        Returns:
            Forward and backward states; each the shared embeddings and N layers of B x T x C.
        """
        x, forward, backward = self._run_towers(tokens, layout)
        return (
            [x, *(layout.unpack(state) for state in forward)],
            [x, *(layout.reverse(layout.unpack(state)) for state in backward)],
        )

    def _tops(self, tokens: Tensor, layout: RowLayout) -> tuple[Tensor, Tensor]:
        """Return the last states of both towers, B x T x C, without bringing the others into order."""
        _, forward, backward = self._run_towers(tokens, layout)
        return layout.unpack(forward[-1]), layout.reverse(layout.unpack(backward[-1]))

    def _run_towers(self, tokens: Tensor, layout: RowLayout) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """Return the embeddings, and each tower's N states in its own order, as the layout packs them."""
        self.check_rows(layout)
        x = self.embed(tokens)
        # Right to left is left to right on the reversed sentence.
        backward = self.forward_layers if self.backward_layers is None else self.backward_layers
        reversed_states = backward(layout.pack(layout.reverse(x)), layout=layout)
        return x, self.forward_layers(layout.pack(x), layout=layout), reversed_states

    def stack(self) -> Stack:
        """Return the forward tower, and the layer norm through which a joining block by attention reads it."""
        return tower_stack(self, self.forward_layers, getattr(self.join, "fwd_layer_norm", None))

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the embeddings, then each layer's block of both towers: N + 1 lists."""
        towers = [tower for tower in (self.forward_layers, self.backward_layers) if tower is not None]
        return [[self.embed], *(list(blocks) for blocks in zip(*towers))]

    def check_top_state(self) -> None:
        """Refuse a pair of language models by an :class:`InputError` that names what to use instead."""
        if self.join is None:
            raise InputError(
                "this pair of language models (trained with --future-target --past-target) has no joining block and "
                "so no single top state: use --src-fusion elmo, or a cloze LM (--self-target)."
            )

    def _joined(self, fwd: Tensor, bwd: Tensor, layout: RowLayout, *, include_self: bool) -> Tensor:
        self.check_top_state()
        assert self.join is not None
        joined: Tensor = self.join(fwd, bwd, layout, include_self=include_self)
        return joined

    def forward(
        self, src_tokens: Tensor, src_lengths: Tensor | None = None, head: Head = F.linear, **_: Any
    ) -> tuple[Any, dict[str, Any]]:
        """Compute the logits of every target.

        Args:
            src_tokens: B x T, ``</s> w1 ... wn </s>`` with padding on either side.
            src_lengths: unused; fairseq passes it.
            head: function of states (B x T x C or B x K x T x C) and output embeddings (V x C), e.g. to logits.

        Returns:
            B x T x V, or B x K x T x V where K > 1 targets are predicted (in the order self, future, past), or what
            the head makes; and an empty dictionary.
        """
        layout = layout_of(src_tokens, self.padding_idx)
        fwd, bwd = self._tops(layout.align(src_tokens), layout)
        tops = {"future": fwd, "past": bwd}
        if "self" in self.targets:
            tops["self"] = self._joined(fwd, bwd, layout, include_self=False)
        states = [layout.restore(tops[target]) for target in self.targets]
        return self.output_layer(states[0] if len(states) == 1 else torch.stack(states, dim=1), head), {}

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute the SRC-ELMO list (SPEC section 2), L x B x T x 2C, and the joining block's output, B x T x C.

        The list is ``[embedding; embedding]``, each layer's ``[forward; backward]``, the context
        ``[join[i-1]; join[i+1]]``, and the joining block's output doubled. Here that block sees the token itself, too.

        Raises:
            InputError: if the top state is wanted of a pair of LMs, which has no joining block.
        """
        layout = layout_of(tokens, self.padding_idx)
        found = LMStates()
        if LAYERS not in want:
            fwd, bwd = self._tops(layout.align(tokens), layout)
            found.top = layout.restore(self._joined(fwd, bwd, layout, include_self=True))
            return found
        forward, backward = self.tower_states(layout.align(tokens), layout)
        states = [torch.cat(pair, dim=-1) for pair in zip(forward, backward)]
        if self.join is not None or TOP in want:
            top = self._joined(forward[-1], backward[-1], layout, include_self=True)
            found.top = layout.restore(top) if TOP in want else None
            top = top.masked_fill(layout.padding.unsqueeze(-1), 0.0)
            states.append(torch.cat([shift_right(top), shift_left(top)], dim=-1))
            states.append(torch.cat([top, top], dim=-1))
        found.layers, found.names = [layout.restore(state) for state in states], self.state_names
        return found


def _check(config: dict[str, Any]) -> None:
    """Refuse targets and flags that contradict each other or would be ignored."""
    if config["targets"] not in TARGET_SETS:
        given = " ".join(f"--{target}-target" for target in config["targets"])
        raise InputError(
            f"bi_transformer_lm cannot be trained with {given}: give --self-target (a cloze LM), --future-target "
            f"--past-target (a pair of LMs), or all three; for a trained model those that it was trained with."
        )
    if config["no_extra_kv"] and config["no_bias_kv"]:
        raise InputError("--no-extra-kv leaves nothing for --no-bias-kv to make zero: give one.")
    if config["linear_final_layer_bias"] and not config["linear_final_layer"]:
        raise InputError("--linear-final-layer-bias needs --linear-final-layer.")
    if config["linear_final_layer"] or "self" not in config["targets"]:
        for flag in ("double_final_heads", "concat_final_q"):
            if config[flag]:
                raise InputError(
                    f"--{flag.replace('_', '-')} belongs to the attention block that joins the "
                    f"towers, and this model has none."
                )


@register_model("bi_transformer_lm", dataclass=ClozeLMConfig)
class BiTransformerLanguageModel(SeveralTargets):
    """The fairseq model ``bi_transformer_lm`` around a :class:`ClozeLM` (``--self-target --sample-break-mode eos``)."""

    decoder: ClozeLM
    target_flags = ("--self-target",)

    @classmethod
    def build_model(cls, cfg: ClozeLMConfig, task: Any) -> BiTransformerLanguageModel:
        """Build an untrained model for fairseq's ``language_modeling`` task.

        Raises:
            InputError: if the task translates.
        """
        check_lm_task(task)
        config = plain_config(cfg, ClozeLMConfig)
        config["targets"] = list(getattr(task, "targets", ["self"]))
        return cls(ClozeLM(config, task.target_dictionary)).follow(cfg)

    @property
    def supported_targets(self) -> set[str]:
        """Return fairseq's names of the targets that the model can predict."""
        return {"self", "future", "past"}


@register_model_architecture("bi_transformer_lm", "bi_transformer_lm_big")
def bi_transformer_lm_big(args: Namespace) -> None:
    """Set the published size: 353M parameters with tied embeddings and a vocabulary size of 37K."""
    big_architecture(args)
