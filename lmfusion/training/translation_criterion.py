"""The criterion ``translation_tasks``: translation, the loss of the language models inside it, and SMART's terms."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from fairseq.criterions import register_criterion
from fairseq.criterions.label_smoothed_cross_entropy import (
    LabelSmoothedCrossEntropyCriterion,
    LabelSmoothedCrossEntropyCriterionConfig,
)
from fairseq.logging import metrics
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.learning_rates import rate_of
from lmfusion.text.labelled import TAGS
from lmfusion.training.gradients import unwrapped
from lmfusion.training.smart import Changes, distance
from lmfusion.training.smart_terms import SmartConfig, SmartTerms
from lmfusion.training.word_loss import check_predicts, framed_rows, word_loss

TRANSLATION = "translation"
Loss = Callable[[], tuple[Tensor, dict[str, Any]]]
"""A function that computes a task's loss, and values to log."""


@dataclass
class TranslationTasksConfig(SmartConfig, LabelSmoothedCrossEntropyCriterionConfig):
    """Flags of ``--criterion translation_tasks``: those of ``label_smoothed_cross_entropy``, and more terms."""

    lm_loss_weight: float = field(
        default=0.0,
        metadata={"help": "weight of the loss of each language model that is trained, on the batch's own sentences"},
    )


@register_criterion("translation_tasks", dataclass=TranslationTasksConfig)
class TranslationTasksCriterion(LabelSmoothedCrossEntropyCriterion):
    """The loss of ``label_smoothed_cross_entropy``; in training with SMART's terms, and the LMs' own loss as a task.

    All terms are means over tokens, which are multiplied by the number of target tokens: as fairseq's loss is a sum.

    Raises:
        InputError: if a flag is out of range.
    """

    def __init__(self, cfg: Any, task: Any) -> None:
        super().__init__(task, cfg.sentence_avg, cfg.label_smoothing, cfg.ignore_prefix_size, cfg.report_accuracy)
        if not 0 <= cfg.lm_loss_weight < math.inf:
            raise InputError(f"--lm-loss-weight {cfg.lm_loss_weight:g}: give 0 or more.")
        self.lm_loss_weight, self.smart = cfg.lm_loss_weight, SmartTerms(cfg)

    @classmethod
    def build_criterion(cls, cfg: Any, task: Any) -> "TranslationTasksCriterion":
        """Build the criterion from its flags."""
        return cls(cfg, task)

    def check(self, model: Any) -> None:
        """Refuse a model on which a term has nothing to work.

        Raises:
            InputError: if no language model is trained in it, one has no loss of its own, or its layers keep nothing by
                which SMART could take gradients within a step.
        """
        trained = _trained(model)
        if (self.lm_loss_weight > 0 or self.smart.weight > 0) and not trained:
            raise InputError(
                "--lm-loss-weight and --smart-weight are for a language model that is trained: give --src-fusion "
                "finetune or --tgt-fusion finetune, or leave them out."
            )
        for fusion, _ in trained if self.lm_loss_weight > 0 else ():
            check_predicts(fusion.lm)
        if self.smart.weight > 0 and any(hasattr(layer, "precheckpoint_forward") for layer in model.modules()):
            raise InputError(
                "--smart-weight takes gradients within a step, and layers under --checkpoint-activations or "
                "--offload-activations have none there: leave one of the two out."
            )

    def task_losses(self, model: Any, sample: dict[str, Any], update: int, averaged: Any = None) -> dict[str, Loss]:
        """Return the tasks of a batch: translation, and the loss of each language model that is trained by now.

        Args:
            model: a ``transformer_lmfusion`` or ``lstm_lmfusion``, perhaps in a wrapper.
            sample: fairseq's batch.
            update: number of the step.
            averaged: the model with averaged weights, for the Bregman term.

        Returns:
            By name a function that returns the loss, a sum over target tokens, and the values to log.
        """
        plain = unwrapped(model)
        losses: dict[str, Loss] = {TRANSLATION: partial(self._translation, model, plain, sample, update, averaged)}
        for fusion, stack in _trained(plain) if self.lm_loss_weight > 0 else ():
            rate = rate_of(next(fusion.lm.parameters()))
            if rate is not None and rate.frozen:  # its gradient would be dropped, and yet count for --clip-norm
                continue
            name = "src_lm" if stack is plain.encoder else "tgt_lm"
            losses[name] = partial(self._words, name, fusion.lm, partial(framed_rows, plain, stack, sample), sample)
        return losses

    def _words(
        self, name: str, lm: Any, rows: Callable[[], Tensor], sample: dict[str, Any]
    ) -> tuple[Tensor, dict[str, Any]]:
        loss, words = word_loss(lm, rows())
        log = {f"{name}_loss": loss.detach(), f"{name}_words": words}
        return self.lm_loss_weight * sample["ntokens"] / max(1, words) * loss, log

    def _translation(
        self, model: Any, plain: Any, sample: dict[str, Any], update: int, averaged: Any
    ) -> tuple[Tensor, dict[str, Any]]:
        words = plain.get_targets(sample, None).ne(self.padding_idx)
        outputs: list[Any] = []

        def run(given: Any) -> Tensor:
            outputs.append(given(**sample["net_input"]))
            logits: Tensor = outputs[-1][0]
            return logits

        def former() -> Tensor:
            return run(averaged.train(plain.training))

        lms = [fusion.lm for fusion, _ in _trained(plain)]
        _, log, added = self.smart(
            partial(run, model),
            lambda one, other: distance(TAGS, one, other, words),
            partial(run, plain),
            None if averaged is None else former,
            Changes(*((lm.token_embedding, lm.vocabulary.is_padding) for lm in lms)),
            update,
            sample["target"].device,
        )
        loss, nll = self.compute_loss(plain, outputs[0], sample)
        size = sample["ntokens"]
        logged: dict[str, Any] = {"loss": loss.detach(), "nll_loss": nll.detach()}
        if self.report_accuracy:
            correct, total = self.compute_accuracy(plain, outputs[0], sample)
            logged |= {"n_correct": correct.detach(), "total": total}
        logged |= {name: term * size for name, term in log.items()}
        return (loss if added is None else loss + size * added), logged

    def joined(self, logs: list[dict[str, Any]], sample: dict[str, Any]) -> tuple[Tensor, int, dict[str, Any]]:
        """Return loss, sample size and log of a batch from those of its tasks."""
        sentences, tokens = sample["target"].size(0), sample["ntokens"]
        size = sentences if self.sentence_avg else tokens  # what fairseq divides by; the loss is a sum over tokens
        log = {"ntokens": tokens, "nsentences": sentences, "sample_size": size}
        for each in logs:
            log |= each
        return torch.as_tensor(log["loss"]), size, log

    @classmethod
    def reduce_metrics(cls, logging_outputs: Any) -> None:
        """Log the sums of all processes; the LMs' losses are in bits a word, SMART's terms in nats a target token."""
        super().reduce_metrics(logging_outputs)

        def total(name: str) -> float:
            return float(sum(log.get(name, 0) for log in logging_outputs))

        for name in ("src_lm", "tgt_lm"):
            words = total(f"{name}_words")
            if words:
                metrics.log_scalar(f"{name}_loss", total(f"{name}_loss") / words / math.log(2), words, round=3)
        for name in ("smart", "bregman"):
            if any(name in log for log in logging_outputs):
                size = total("ntokens")
                metrics.log_scalar(name, total(name) / size, size, round=8)


def _trained(model: Any) -> list[tuple[Any, Any]]:
    """Return the integrations whose language models are trained, each with its stack."""
    return [pair for pair in model.fusions() if pair[0].trains_lm] if hasattr(model, "fusions") else []
