"""The criterion ``sentence_tasks``: the loss of each task's head, with SMART's terms, and what is measured of it."""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq import metrics
from fairseq.criterions import FairseqCriterion, register_criterion
from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from omegaconf import II
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.training import sentence_measures as measures
from lmfusion.training.smart import INF, NORMS, Ball, Changes, SameDropout, distance, most_distant, tagged_words


def _flag(text: str, default: Any) -> Any:
    return field(default=default, metadata={"help": text})


@dataclass
class SentenceTasksConfig(FairseqDataclass):
    """Flags of ``--criterion sentence_tasks``."""

    smart_weight: float = _flag("SMART: weight of smoothness under changed embeddings (0: off; paper: 1 to 5)", 0.0)
    smart_epsilon: float = _flag("SMART: radius of the ball around an example's embeddings", 1e-5)
    smart_steps: int = _flag("SMART: steps of the search for the most distant output", 1)
    smart_step_size: float = _flag("SMART: length of such a step", 1e-3)
    smart_noise: float = _flag("SMART: standard deviation of the noise that the search starts from", 1e-5)
    smart_norm: ChoiceEnum(list(NORMS)) = field(  # type: ignore[valid-type]
        default=INF, metadata={"help": "SMART: norm of the ball"}
    )
    bregman_weight: float = _flag("SMART: weight of the distance from averaged weights (0: off; paper: 1)", 0.0)
    bregman_momentum: float = _flag("SMART: part of the former average in each new one", 0.99)
    seed: int = II("common.seed")


@register_criterion("sentence_tasks", dataclass=SentenceTasksConfig)
class SentenceTasksCriterion(FairseqCriterion):
    """The mean loss of each task; those of a joint step are added.

    Raises:
        InputError: if a flag is out of range.
    """

    def __init__(self, cfg: SentenceTasksConfig, task: Any) -> None:
        super().__init__(task)
        self.cfg = cfg
        for name in ("smart_weight", "smart_noise", "bregman_weight"):
            if getattr(cfg, name) < 0:
                raise InputError(f"--{name.replace('_', '-')} {getattr(cfg, name):g}: give 0 or more.")
        if cfg.smart_epsilon <= 0 or cfg.smart_step_size <= 0 or cfg.smart_steps < 1:
            raise InputError("--smart-epsilon and --smart-step-size have to be above 0, --smart-steps 1 or more.")
        if not 0 <= cfg.bregman_momentum < 1:
            raise InputError(f"--bregman-momentum {cfg.bregman_momentum:g}: give 0 or more and below 1.")
        self.ball = Ball(cfg.smart_epsilon, cfg.smart_steps, cfg.smart_step_size, cfg.smart_noise, str(cfg.smart_norm))

    @classmethod
    def build_criterion(cls, cfg: SentenceTasksConfig, task: Any) -> "SentenceTasksCriterion":
        """Build the criterion from its flags."""
        return cls(cfg, task)

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
        plain = getattr(model, "module", model)
        head, rows, target = plain.heads[name], part["rows"], part["target"]
        changes = Changes(plain.lm.token_embedding, plain.lm.padding_idx)
        passes = SameDropout(rows[0].device)
        with changes.seen():
            logits = model(name, rows)
        loss = head.loss(logits, target)
        log = measures.counts(head.spec, logits.detach(), target, loss.detach())
        words = tagged_words(target)

        def apart(one: Tensor, other: Tensor) -> Tensor:
            return distance(head.spec.kind, one, other, words)

        if self.cfg.smart_weight > 0:
            self._check_trained(plain)

            def again() -> Tensor:
                passes.again()
                result: Tensor = plain(name, rows)
                return result

            generator = torch.Generator().manual_seed((self.cfg.seed * 1_000_003 + update) % 2**63)
            rough = most_distant(again, logits, changes, apart, self.ball, generator)
            loss = loss + self.cfg.smart_weight * rough
            log["smart"] = rough.detach()
        if self.cfg.bregman_weight > 0 and averaged is not None:
            passes.again()
            with torch.no_grad():
                former = averaged.train(plain.training)(name, rows)
            away = apart(logits, former)
            loss = loss + self.cfg.bregman_weight * away
            log["bregman"] = away.detach()
        return loss, {name: log}

    def _check_trained(self, model: Any) -> None:
        if model.lm.frozen:
            raise InputError(
                "--smart-weight changes what the language model reads, which a frozen one passes no gradient of: give "
                "--src-fusion finetune, or leave it out."
            )

    def joined(self, logs: list[dict[str, Any]], sample: dict[str, Any]) -> tuple[Tensor, int, dict[str, Any]]:
        """Return loss, sample size and log of a batch from those of its tasks; gradients are means already."""
        log: dict[str, Any] = {"nsentences": sample["nsentences"], "ntokens": sample["ntokens"], "sample_size": 1}
        loss = torch.zeros(())
        for each in logs:
            for name, values in each.items():
                log |= {f"{name}.{key}": value for key, value in values.items()}
                loss = loss + values["loss"].cpu() / values["n"]
        return loss, 1, {**log, "loss": loss}

    def forward(self, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        """Compute the loss of a batch without SMART's terms, for validation.

        Returns:
            The loss, 1 as its sample size, and the values to log.
        """
        logs = []
        for name, part in sample["tasks"].items():
            logits = model(name, part["rows"])
            head = model.heads[name]
            logs.append({name: measures.counts(head.spec, logits, part["target"], head.loss(logits, part["target"]))})
        return self.joined(logs, sample)

    @classmethod
    def reduce_metrics(cls, logging_outputs: list[dict[str, Any]]) -> None:
        """Log the mean loss, and the measures of every task; see :mod:`lmfusion.training.sentence_measures`."""
        size = sum(log.get("sample_size", 0) for log in logging_outputs)
        metrics.log_scalar("loss", sum(log.get("loss", 0) for log in logging_outputs) / max(1, size), size, round=4)
        measures.log(logging_outputs)

    @staticmethod
    def logging_outputs_can_be_summed() -> bool:
        """Return False: several processes may hold batches of different tasks."""
        return False
