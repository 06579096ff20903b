"""``--criterion lm_prior``: cross-entropy and a language model as prior of the target (Baziotis et al. 2020).

With the translation model's distribution p_TM and the LM's p_LM, both of a temperature tau, a token costs

    cross-entropy + weight * tau^2 * KL(p_TM || p_LM)

(arXiv 2004.14928, section 3). The divergence is low where the model is probable under the LM, however much more the
LM allows; tau^2 makes up for gradients that shrink as 1 / tau^2. The program that the authors released computes the
opposite divergence, KL(p_LM || p_TM), which is distillation from the LM; ``--prior-direction lm_tm`` does that.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import logging
import math
from dataclasses import dataclass, field
from typing import Any, Optional

import torch
import torch.nn.functional as F
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.dataclass import ChoiceEnum
from fairseq.logging import metrics
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.interface import TOP, PretrainedLM
from lmfusion.lm.loading import load_lm
from lmfusion.lm.symbols import check_symbols

logger = logging.getLogger(__name__)

TM_LM, LM_TM = "tm_lm", "lm_tm"
"""KL(p_TM || p_LM), and KL(p_LM || p_TM)."""


@dataclass
class LMPriorConfig(LabelSmoothedCrossEntropyCriterionConfig):
    """Flags of ``--criterion lm_prior``: those of ``label_smoothed_cross_entropy``, and the prior's."""

    prior_lm: Optional[str] = field(
        default=None,
        metadata={"help": "language model of the target language; needed to resume, too, but not to translate"},
    )
    prior_weight: float = field(default=0.5, metadata={"help": "weight of the divergence from the language model"})
    prior_temperature: float = field(default=2.0, metadata={"help": "tau, by which both models' logits are divided"})
    prior_direction: ChoiceEnum([TM_LM, LM_TM]) = field(  # type: ignore[valid-type]
        default=TM_LM, metadata={"help": "tm_lm: KL(p_TM || p_LM), the paper's; lm_tm: KL(p_LM || p_TM), distillation"}
    )


@register_criterion("lm_prior", dataclass=LMPriorConfig)
class LMPriorCriterion(LabelSmoothedCrossEntropyCriterion):
    """The loss of ``label_smoothed_cross_entropy`` and the divergence from a frozen language model.

    Raises:
        InputError: if the language model is missing or cannot score the target, or a number makes no sense.
    """

    def __init__(
        self,
        task: Any,
        sentence_avg: bool,
        label_smoothing: float,
        ignore_prefix_size: int = 0,
        report_accuracy: bool = False,
        prior_lm: Optional[str] = None,
        prior_weight: float = 0.5,
        prior_temperature: float = 2.0,
        prior_direction: str = TM_LM,
    ) -> None:
        super().__init__(task, sentence_avg, label_smoothing, ignore_prefix_size, report_accuracy)
        if not 0 <= prior_weight < math.inf:
            raise InputError(f"--prior-weight {prior_weight:g}: give 0 or more.")
        if not 0 < prior_temperature < math.inf:
            raise InputError(f"--prior-temperature {prior_temperature:g}: give more than 0; 1 leaves it as it is.")
        self.weight, self.temperature, self.direction = prior_weight, prior_temperature, str(prior_direction)
        # In a list: what were a module here would be in every checkpoint.
        self._lm = [load_prior(prior_lm, list(task.target_dictionary.symbols))]
        self._divergence: Optional[Tensor] = None
        self._limit_targets(task)

    def _limit_targets(self, task: Any) -> None:
        """Make fairseq treat targets that the language model cannot score as it treats those too long for the model.

        The task's configuration is a copy: a checkpoint keeps the value given.
        """
        limit, settings = self._lm[0].max_positions(), getattr(task, "cfg", None)
        if settings is not None and settings.max_target_positions > limit:
            logger.info(f"targets of more than the {limit} tokens that --prior-lm takes are too long for training")
            settings.max_target_positions = limit

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """Compute the loss of a batch as fairseq's criterion does; what is logged has the divergence, too."""
        loss, sample_size, logged = super().forward(model, sample, reduce)
        divergence, self._divergence = self._divergence, None
        assert divergence is not None
        return loss, sample_size, {**logged, "prior_loss": divergence.sum().data}

    def compute_loss(
        self, model: Any, net_output: Any, sample: dict[str, Any], reduce: bool = True
    ) -> tuple[Tensor, Tensor]:
        """Return the loss with the prior, and the negative log-likelihood alone (scalars, or N x 1 unless reduced)."""
        loss, nll = super().compute_loss(model, net_output, sample, reduce)
        logits, start = net_output[0], self.ignore_prefix_size
        if getattr(getattr(model, "decoder", None), "adaptive_softmax", None) is not None:
            raise InputError("--criterion lm_prior needs full logits: leave out --adaptive-softmax-cutoff.")
        prior = self._prior_logits(model, sample["net_input"]["prev_output_tokens"], logits.device)
        per_token = divergence(logits[:, start:], prior[:, start:], self.temperature, self.direction)
        padding = model.get_targets(sample, net_output)[:, start:].eq(self.padding_idx)
        self._divergence = per_token.masked_fill(padding, 0.0).reshape(-1, 1)
        added = self.weight * self._divergence
        return loss + (added.sum() if reduce else added), nll

    @torch.no_grad()
    def _prior_logits(self, model: Any, tokens: Tensor, device: torch.device) -> Tensor:
        """Return the language model's logits: B x T prefixes -> B x T x V."""
        (lm,) = self._lm
        precision = next(model.parameters()).dtype
        if next(lm.parameters()).dtype != precision or next(lm.parameters()).device != device:
            lm.to(device=device, dtype=precision)
        top = lm.states(lm.vocabulary.ids(tokens), want={TOP}).top
        assert top is not None
        return lm.logits(top)

    @classmethod
    def reduce_metrics(cls, logging_outputs: Any) -> None:
        """Log the sums of all processes; ``prior_loss`` is the divergence times tau^2, in bits a token."""
        super().reduce_metrics(logging_outputs)
        total = sum(log.get("prior_loss", 0) for log in logging_outputs)
        tokens = sum(log.get("ntokens", 0) for log in logging_outputs)
        metrics.log_scalar("prior_loss", total / tokens / math.log(2), tokens, round=3)


def divergence(logits: Tensor, prior: Tensor, temperature: float, direction: str = TM_LM) -> Tensor:
    """Return ``tau^2 KL(p_TM || p_LM)`` of softened distributions, or of the other direction.

    Args:
        logits: of the translation model, ... x V.
        prior: logits of the language model, ... x V.
        temperature: tau, by which both are divided.
        direction: :data:`TM_LM` or :data:`LM_TM`.

    Returns:
        A value for each position, in nats and float32 (float64 of such logits).
    """
    precise = torch.promote_types(logits.dtype, torch.float32)
    tm, lm = (F.log_softmax(each.to(precise) / temperature, dim=-1) for each in (logits, prior))
    of, by = (tm, lm) if direction == TM_LM else (lm, tm)
    return temperature**2 * (of.exp() * (of - by)).sum(-1)


def load_prior(path: Optional[str], symbols: list[str]) -> PretrainedLM:
    """Load a language model that can score the prefixes of a target dictionary.

    Args:
        path: of its file; None: it was not given.
        symbols: of the target dictionary, in index order.

    Raises:
        InputError: if it is missing, sees later words, predicts none, or has another dictionary.
    """
    if not path:
        raise InputError("--criterion lm_prior needs a language model of the target language: give it by --prior-lm.")
    lm = load_lm(path)
    if lm.sees_future or type(lm).logits is PretrainedLM.logits:
        raise InputError(
            f"--prior-lm {path} is a {lm.title}, which predicts no next words: give a causal LM (uni_transformer_lm)."
        )
    check_symbols(lm.symbols, symbols, what="the target dictionary")
    return lm
