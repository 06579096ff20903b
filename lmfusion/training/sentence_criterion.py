"""The criterion ``sentence_tasks``: the loss of each task's head, with SMART's terms, and what is measured of it."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass
from functools import partial
from typing import Any, Optional

import torch
from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.training import sentence_measures as measures
from lmfusion.training.gradients import unwrapped
from lmfusion.training.smart import Changes, distance, tagged_words
from lmfusion.training.smart_terms import SmartConfig, SmartTerms


@dataclass
class SentenceTasksConfig(SmartConfig):
    """Flags of ``--criterion sentence_tasks``: those of SMART."""


@register_criterion("sentence_tasks", dataclass=SentenceTasksConfig)
class SentenceTasksCriterion(FairseqCriterion):
    """The mean loss of each task; those of a joint step are added.

    Raises:
        InputError: if a flag is out of range.
    """

    def __init__(self, cfg: SentenceTasksConfig, task: Any) -> None:
        super().__init__(task)
        self.smart = SmartTerms(cfg)

    @classmethod
    def build_criterion(cls, cfg: SentenceTasksConfig, task: Any) -> "SentenceTasksCriterion":
        """Build the criterion from its flags."""
        return cls(cfg, task)

    def check(self, model: Any) -> None:
        """Refuse a model that SMART cannot work on.

        Raises:
            InputError: if its language model is frozen.
        """
        if self.smart.weight > 0 and model.lm.frozen:
            raise InputError(
                "--smart-weight changes what the language model reads, which a frozen one passes no gradient of: give "
                "--src-fusion finetune, or leave it out."
            )

    def task_loss(
        self, model: Any, name: str, part: dict[str, Any], update: int, averaged: Any = None
    ) -> tuple[Tensor, dict[str, Any]]:
        """Compute the loss of a task's batch in training.

        Args:
            model: a ``lmfusion_heads``, perhaps in a wrapper.
            name: of the task.
            part: its ``rows`` and ``target``.
            update: number of the step.
            averaged: the model with averaged weights, for the Bregman term.

        Returns:
            The mean loss with its terms, and the values to log.
        """
        plain = unwrapped(model)
        head, rows, target = plain.heads[name], part["rows"], part["target"]
        words = tagged_words(target)
        logits, terms, added = self.smart(
            partial(model, name, rows),
            lambda one, other: distance(head.spec.kind, one, other, words),
            partial(plain, name, rows),
            None if averaged is None else lambda: averaged.train(plain.training)(name, rows),
            Changes((plain.lm.token_embedding, plain.lm.vocabulary.is_padding)),
            update,
            rows[0].device,
        )
        loss = head.loss(logits, target)
        log = {**measures.counts(head.spec, logits.detach(), target, loss.detach()), **terms}
        return (loss if added is None else loss + added), {name: log}

    def joined(
        self, logs: list[dict[str, Any]], sample: dict[str, Any], shares: Optional[dict[str, float]] = None
    ) -> tuple[Tensor, float, dict[str, Any]]:
        """Return loss, sample size and log of a batch from those of its tasks; gradients are means already.

        In training the losses of tasks are added, and each batch counts as one: fairseq divides gradients by it. In
        validation a batch counts as the part that it is of its task, so that the loss is the mean of the tasks' means,
        on which the size of batches has no influence.

        Args:
            logs: of each task.
            sample: the batch.
            shares: in validation the parts of the tasks, by name.
        """
        log: dict[str, Any] = {"nsentences": sample["nsentences"], "ntokens": sample["ntokens"]}
        loss = torch.zeros(())
        for each in logs:
            for name, values in each.items():
                log |= {f"{name}.{key}": value for key, value in values.items()}
                mean = values["loss"].cpu() / max(1, values["n"])
                loss = loss + (mean if shares is None else shares[name] * mean)
        size = 1 if shares is None else sum(shares.values())
        return loss, size, {**log, "sample_size": size, "loss": loss}

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """Compute the loss of a batch without SMART's terms, for validation.

        Returns:
            The loss, its sample size, and the values to log; see :meth:`joined`.
        """
        logs = []
        for name, part in sample["tasks"].items():
            logits = model(name, part["rows"])
            head = model.heads[name]
            logs.append({name: measures.counts(head.spec, logits, part["target"], head.loss(logits, part["target"]))})
        return self.joined(logs, sample, sample.get("shares"))

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean loss, and the measures of every task; see :mod:`lmfusion.training.sentence_measures`."""
        size = sum(log.get("sample_size", 0) for log in logging_outputs)
        metrics.log_scalar("loss", sum(log.get("loss", 0) for log in logging_outputs) / (size or 1), size, round=4)
        measures.log(logging_outputs)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Return False: several processes may hold batches of different tasks."""
        return False
