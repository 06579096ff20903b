"""fairseq's training log (`--log-format json`) as numbers."""

from __future__ import annotations

import json
import math
import re
import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError

_RECORD = re.compile(r"\| INFO \| (train_inner|train|valid) \| (\{.*\})\s*$")


@dataclass(frozen=True)
class Progress:
    """One logging interval of training, or one validation.

    `loss` is in bits (fairseq's base 2). `perplexity` is 2 to the plain negative log-likelihood, also with label
    smoothing. `words_per_second` counts target tokens; 0 in a validation. `bleu` is that of a validation with
    `--eval-bleu`.
    """

    updates: int
    loss: float
    perplexity: float
    words_per_second: float = 0.0
    learning_rate: float = 0.0
    bleu: float | None = None


@dataclass
class TrainLog:
    """Training and validation by number of updates; what a resumed run did again counts once."""

    training: dict[int, Progress] = field(default_factory=dict)
    validation: dict[int, Progress] = field(default_factory=dict)

    def add_line(self, line: str) -> tuple[str, Progress] | None:
        """Take in a line of the log; return ("train" or "valid", what it says) if it says something."""
        match = _RECORD.search(line)
        if match is None or match[1] == "train":
            return None
        try:
            values = json.loads(match[2])
        except ValueError:
            return None
        if not isinstance(values, dict) or not {"num_updates", "valid_num_updates"} & values.keys():
            return None
        is_valid = match[1] == "valid"
        try:
            progress = _progress(values, "valid_" if is_valid else "")
        except (ValueError, TypeError, OverflowError):  # a damaged line says nothing
            return None
        (self.validation if is_valid else self.training)[progress.updates] = progress
        return "valid" if is_valid else "train", progress

    @property
    def updates(self) -> int:
        """Return the number of updates done so far, as far as the log tells."""
        return max([0, *self.training, *self.validation])

    @property
    def words_per_second(self) -> float:
        """Return target tokens trained on per second: the median of the logging intervals."""
        speeds = [progress.words_per_second for progress in self.training.values() if progress.words_per_second]
        return statistics.median(speeds) if speeds else 0.0

    @property
    def best_validation(self) -> Progress | None:
        """Return the validation with the lowest loss (of checkpoint_best.pt); one whose loss is no number is none."""
        finite = [progress for progress in self.validation.values() if math.isfinite(progress.loss)]
        return min(finite, key=lambda progress: progress.loss, default=None)

    def without_loss(self) -> list[tuple[str, int]]:
        """Return where the loss was NaN or infinite: ("training" or "validation", update), in the order of updates."""
        found = [
            (kind, progress.updates)
            for kind, values in (("training", self.training), ("validation", self.validation))
            for progress in values.values()
            if not math.isfinite(progress.loss)
        ]
        return sorted(found, key=lambda place: place[1])

    def summary(self) -> dict[str, Any]:
        """Return the figures a run folder keeps; those of the best validation are of that with the lowest loss."""
        best = self.best_validation
        return {
            "updates": self.updates,
            "tokens_per_second": round(self.words_per_second, 1),
            "best_valid_loss": best and best.loss,
            "best_valid_perplexity": best and best.perplexity,
            "best_valid_updates": best and best.updates,
        }


def _progress(values: dict[str, Any], prefix: str) -> Progress:
    def number(*names: str) -> float:
        found = (values[prefix + name] for name in names if values.get(prefix + name) is not None)
        return float(next(found, "nan"))

    return Progress(
        updates=int(number("num_updates")),
        loss=number("loss"),
        perplexity=number("ppl"),
        words_per_second=0.0 if prefix else _or_zero(number("wps")),
        learning_rate=0.0 if prefix else _or_zero(number("lr")),
        bleu=float(values["valid_bleu"]) if prefix and "valid_bleu" in values else None,
    )


def _or_zero(value: float) -> float:
    return 0.0 if value != value else value


def read(lines: Iterable[str]) -> TrainLog:
    """Parse a log."""
    log = TrainLog()
    for line in lines:
        log.add_line(line)
    return log


def read_file(path: Path) -> TrainLog:
    """Parse a log file.

    Raises:
        InputError: there is no such file.
    """
    if not path.is_file():
        raise InputError(f"{path}: no such log. Has the training been started?")
    with path.open(encoding="utf-8", errors="replace") as stream:
        return read(stream)
