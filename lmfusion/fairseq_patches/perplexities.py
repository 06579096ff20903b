"""The perplexity of a language model that predicts several words at a position, told for each."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Callable

from fairseq.logging import metrics
from fairseq.utils import get_perplexity

from lmfusion.errors import InputError
from lmfusion.fairseq_patches.patch import Patch
from lmfusion.lm.several_targets import BY_TARGET, SeveralTargets

TARGETS = ("self", "future", "past")


def count_each_target(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make a criterion's ``forward`` log what the model found out about each target in validation."""

    def forward(self: Any, model: Any, sample: dict[str, Any], reduce: bool = True) -> Any:
        loss, sample_size, logged = original(self, model, sample, reduce=reduce)
        return loss, sample_size, {**logged, **sample.pop(BY_TARGET, {})}

    return forward


def log_each_target(original: staticmethod[..., Any]) -> staticmethod[..., Any]:
    """Make a criterion's ``reduce_metrics`` log ``ppl_future`` and so on, where they were counted."""

    def reduce_metrics(logging_outputs: Sequence[Mapping[str, Any]]) -> None:
        original.__func__(logging_outputs)
        for target in TARGETS:
            words = sum(log.get(f"words_{target}", 0) for log in logging_outputs)
            if words:
                nll = sum(log.get(f"nll_{target}", 0) for log in logging_outputs)
                metrics.log_scalar(f"nll_{target}", nll / words / math.log(2), words, round=3)
                metrics.log_derived(f"ppl_{target}", partial(_perplexity, f"nll_{target}"))

    return staticmethod(reduce_metrics)


def _perplexity(name: str, meters: Mapping[str, Any]) -> float:
    return float(get_perplexity(meters[name].avg))


def refuse_several_targets(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``SequenceScorer.generate`` refuse a language model of several targets, of which it could score one."""

    def generate(self: Any, models: Sequence[Any], sample: Any, **kwargs: Any) -> Any:
        for model in models:
            if isinstance(model, SeveralTargets) and len(model.targets) > 1:
                raise InputError(
                    f"a {model.decoder.title} predicts several words at a position, and this command scores one: "
                    f"fairseq-validate prints the perplexity of each target (ppl_future, ppl_past)."
                )
        return original(self, models, sample, **kwargs)

    return generate


_CRITERION = "fairseq.criterions.cross_entropy:CrossEntropyCriterion"
ROWS = (
    Patch(
        _CRITERION,
        "forward",
        count_each_target,
        "A language model with --future-target --past-target logs one perplexity, near the product of two: its loss is "
        "the sum over both, divided by the number of symbols of the source.",
    ),
    Patch(
        _CRITERION, "reduce_metrics", log_each_target, "As of forward: validation logs ppl_future and ppl_past, too."
    ),
    Patch(
        "fairseq.sequence_scorer:SequenceScorer",
        "generate",
        refuse_several_targets,
        "fairseq-eval-lm ends in a ValueError for such a language model.",
    ),
)
