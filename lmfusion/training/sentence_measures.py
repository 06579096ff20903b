"""What is measured of sentence tasks: accuracy, F1, Pearson's r, from sums that batches and processes add up."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from fairseq import metrics
from torch import Tensor

from lmfusion.consumers.heads import IGNORED, HeadSpec, scores
from lmfusion.text.labelled import BINARY, SCORE, TAGS

_MOMENTS = ("x", "y", "xx", "yy", "xy")
_BINARY = ("true_positive", "predicted", "positive")
AVERAGE = "average"
"""The mean of the tasks' accuracies and correlations, minBERT's measure of several tasks."""


def counts(spec: HeadSpec, logits: Tensor, target: Tensor, loss: Tensor) -> dict[str, Any]:
    """Return the sums of a batch that the measures need.

    Args:
        spec: of the task's head.
        logits: as the head gives them.
        target: as the head's loss takes it.
        loss: the mean loss, a scalar.

    Returns:
        ``n`` examples (of tags: words), ``loss`` (its sum), and ``correct``; of ``binary`` also what F1 needs, of
        scores the moments that r needs, in float64.
    """
    if spec.kind == SCORE:
        x, y = scores(logits).double(), target.double()
        values = (x, y, x * x, y * y, x * y)
        sums = {name: value.sum() for name, value in zip(_MOMENTS, values)}
        return {"n": len(x), "loss": loss * len(x), **sums}
    if spec.kind == BINARY:
        yes, positive = logits > 0, target > 0.5
        found = {"true_positive": (yes & positive).sum(), "predicted": yes.sum(), "positive": positive.sum()}
        return {"n": len(target), "loss": loss * len(target), "correct": yes.eq(positive).sum(), **found}
    counted = target.ne(IGNORED)
    n = int(counted.sum())
    return {"n": n, "loss": loss * n, "correct": (logits.argmax(-1).eq(target) & counted).sum()}


def pearson(n: float, x: float, y: float, xx: float, yy: float, xy: float) -> float:
    """Return Pearson's r from sums of n pairs: of x, y, their squares and products; nan where one does not vary.

    What varies less than float32 resolves, in which x and y were computed, does not vary.
    """
    spreads = [xx - x * x / n, yy - y * y / n]
    if any(spread <= np.finfo(np.float32).eps ** 2 * squares for spread, squares in zip(spreads, (xx, yy))):
        return float("nan")
    return float((xy - x * y / n) / np.sqrt(spreads[0] * spreads[1]))


def f1(true_positive: float, predicted: float, positive: float) -> float:
    """Return the harmonic mean of precision and recall of the class 1; 0 where nothing is found."""
    return 2 * true_positive / (predicted + positive) if predicted + positive else 0.0


def log(outputs: Sequence[dict[str, Any]]) -> None:
    """Log each task's measures, and their average, by fairseq's meters, which add up the sums of batches.

    Args:
        outputs: of batches: ``TASK.NAME`` -> a sum from :func:`counts`, or a term of SMART.
    """
    names = sorted({key.split(".")[0] for output in outputs for key in output if "." in key})
    for name in names:
        sums: dict[str, float] = {}
        for output in outputs:
            for key, value in output.items():
                if key.startswith(f"{name}."):
                    sums[key.split(".")[1]] = sums.get(key.split(".")[1], 0.0) + float(value)
        _log_task(name, sums, sum(f"{name}.n" in output for output in outputs))
    if names:
        metrics.log_derived(AVERAGE, average)


def _log_task(name: str, sums: dict[str, float], batches: int) -> None:
    n = sums["n"]
    metrics.log_scalar(f"{name}_loss", sums["loss"] / max(1, n), n, round=4)
    for term in ("smart", "bregman"):
        if term in sums:
            metrics.log_scalar(f"{name}_{term}", sums[term] / batches, batches, round=8)
    for key in ("n", "correct", *_BINARY, *_MOMENTS):
        if key in sums:
            metrics.log_scalar_sum(f"_{name}_{key}", sums[key])

    if "xy" in sums:
        _derive(name, "r", pearson, ("n", *_MOMENTS))
        return
    _derive(name, "accuracy", operator.truediv, ("correct", "n"))
    if "predicted" in sums:
        _derive(name, "f1", f1, _BINARY)


def _derive(name: str, measure: str, of: Callable[..., float], keys: Sequence[str]) -> None:
    """Log a measure of a task's sums; None, as fairseq's own meters, where nothing of the task was counted.

    That is so between two lines of the log (``--log-interval``) in which the task had no turn.
    """

    def value(meters: Any) -> float | None:
        sums = [float(meters[f"_{name}_{key}"].sum) for key in keys]
        return round(of(*sums), 4) if meters[f"_{name}_n"].sum > 0 else None

    metrics.log_derived(f"{name}_{measure}", value)


def average(meters: Any) -> float | None:
    """Return the mean of all accuracies and correlations among fairseq's meters; None where there are none."""
    keys = [key for key in meters if key.endswith(("_accuracy", "_r")) and key[0] != "_"]
    found = [value for value in (meters[key].fn(meters) for key in keys) if value is not None]
    return round(float(np.mean(found)), 4) if found else None


def correlation(predicted: Sequence[float], wanted: Sequence[float]) -> float:
    """Return Pearson's r by scipy; nan where one side does not vary."""
    from scipy.stats import pearsonr  # type: ignore[import-untyped]

    if len(predicted) < 2 or len(set(predicted)) < 2 or len(set(wanted)) < 2:
        return float("nan")
    return float(pearsonr(predicted, wanted)[0])


def measured(spec: HeadSpec, predicted: Sequence[str], wanted: Sequence[str]) -> dict[str, float]:
    """Return the measures of whole lists of labels, for ``lmfusion predict``.

    Args:
        spec: of the head.
        predicted: labels, tags or scores, one text each.
        wanted: as many.
    """
    if spec.kind == SCORE:
        return {"r": correlation([float(each) for each in predicted], [float(each) for each in wanted])}
    pairs = [pair for one, other in zip(predicted, wanted) for pair in zip(one.split(), other.split())]
    if spec.kind != BINARY:
        pairs = pairs if spec.kind == TAGS else list(zip(predicted, wanted))
        return {"accuracy": float(np.mean([one == other for one, other in pairs]))}
    hits = sum(one == other == "1" for one, other in pairs)
    found = f1(hits, sum(one == "1" for one, _ in pairs), sum(other == "1" for _, other in pairs))
    return {"accuracy": float(np.mean([one == other for one, other in pairs])), "f1": found}


def unknown_labels(spec: HeadSpec, wanted: Sequence[str]) -> list[str]:
    """Return the classes or tags among labels that a head does not have, sorted: every prediction of one is wrong."""
    names = (name for label in wanted for name in (label.split() if spec.kind == TAGS else [label]))
    return sorted(set(names) - set(spec.classes)) if spec.classes else []
