"""The integration ``finetune``: an LM's top state, trained further (Edunov et al. 2019, section 2.2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.elmo import REPRESENTATION_DROPOUT, make_projection
from lmfusion.fusion.interface import Fusion, Side, register_fusion
from lmfusion.fusion.learning_rates import (
    LearningRate,
    check_optimizer_settings,
    check_unused_parameters,
    set_learning_rate,
)
from lmfusion.lm.interface import TOP, IncrementalState, LMStates, PretrainedLM
from lmfusion.operations import dropout


def _flag(text: str) -> Any:
    return field(default=None, metadata={"help": f"finetune: {text}"})


@dataclass
class FinetuneConfig:
    """Flags of the integration ``finetune``."""

    lm_dropout: float | None = _flag("the LM's dropout (default: as pretrained)")
    lm_attention_dropout: float | None = _flag("the LM's attention dropout (default: as pretrained)")
    lm_relu_dropout: float | None = _flag("the LM's dropout after the ReLU (default: as pretrained)")
    lm_lr_scale: float | None = _flag("the LM's learning rate as a multiple of --lr (default: 1)")
    lm_freeze_layers: int | None = _flag(
        "keep the LM's embeddings and this many lower layers as pretrained (default: 0, all is trained)"
    )
    lm_freeze_updates: int | None = _flag(
        "leave the LM as it is for the first updates, until the rest has found its feet (default: 0)"
    )
    lm_lora: int | None = _flag(
        "train low-rank adapters of this rank in a Hugging Face LM in place of its weights (needs lmfusion[lora]): 8"
    )
    representation_dropout: float | None = field(default=None, metadata={"help": REPRESENTATION_DROPOUT})


@register_fusion("finetune")
class FinetuneFusion(Fusion):
    """Fine-tuning: the embeddings are ``dropout(W top(LM))``, and the LM is trained with everything else.

    W (bias-free) exists only if the side's width is not C (Edunov et al. 2019, section 2.2). The LM's embeddings and
    its lowest ``lm_freeze_layers`` layers stay frozen, and with ``lm_lora`` all but adapters of the others; its first
    ``lm_freeze_updates`` updates run without gradients.

    Raises:
        InputError: if the LM has no single top state, or the frozen layers leave nothing to train.
    """

    Config = FinetuneConfig
    title = "the LM's top layer, trained"
    trains_lm = True

    def __init__(self, lm: PretrainedLM, side: Side, config: FinetuneConfig) -> None:
        lm.check_top_state()
        super().__init__(lm.unfreeze(), side, config)
        lm.freeze_layers(config.lm_freeze_layers or 0)
        self.rate = learning_rate(config)
        if not self.rate.is_plain:
            set_learning_rate(lm, self.rate)
        self.projection = make_projection(lm.embed_dim, side.width)
        self.dropout = config.representation_dropout or 0.0

    @classmethod
    def lm_overrides(cls, config: FinetuneConfig) -> Mapping[str, Any]:
        """Return the dropout probabilities that replace those of pretraining; None replaces nothing."""
        return {
            "dropout": config.lm_dropout,
            "attention_dropout": config.lm_attention_dropout,
            "activation_dropout": config.lm_relu_dropout,
            "lora": config.lm_lora,
        }

    @classmethod
    def check(cls, config: FinetuneConfig, flag: Callable[[str], str], run: Any) -> None:
        """Refuse learning rates that are invalid or that a training run cannot have; see :meth:`Fusion.check`.

        Raises:
            InputError: naming the flag and the fix.
        """
        for name in ("lm_lr_scale", "lm_freeze_updates"):
            value = getattr(config, name)
            if value is not None and not 0 <= value < math.inf:
                raise InputError(f"{flag(name)} {value:g}: give 0 or more.")
            if value is not None:
                check_optimizer_settings(run, flag(name))
        if config.lm_lr_scale == 0:
            raise InputError(
                f"{flag('lm_lr_scale')} 0 would keep the language model as it is while paying for its training: use "
                f"{flag('fusion')} elmo for a frozen one."
            )
        if config.lm_freeze_updates:
            check_unused_parameters(run, flag("lm_freeze_updates"))

    def read(self, tokens: Tensor, incremental_state: IncrementalState | None = None) -> LMStates:
        """Return the top state, without gradients while the LM is frozen; see :meth:`Fusion.read`."""
        with nullcontext() if not self.rate.frozen else torch.no_grad():
            return self.lm.states(tokens, incremental_state, want={TOP})

    def embed(self, states: LMStates) -> Tensor:
        """Project the top state: B x T x C -> B x T x width."""
        assert states.top is not None
        x = states.top if self.projection is None else self.projection(states.top)
        if self.rate.frozen and torch.is_grad_enabled() and not x.requires_grad:
            x = x.detach().requires_grad_()  # fairseq's --checkpoint-activations gives no gradient to layers without
        return dropout(x, self.dropout, self.training)

    def set_num_updates(self, num_updates: int) -> None:
        """Set the number of updates so far; fairseq calls this before every step."""
        self.rate.num_updates = num_updates


def learning_rate(config: FinetuneConfig) -> LearningRate:
    """Return the language model's learning rate according to the flags."""
    return LearningRate(1.0 if config.lm_lr_scale is None else config.lm_lr_scale, config.lm_freeze_updates or 0)
