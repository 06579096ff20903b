"""The difference of two rows of trainings, each with several seeds: a bootstrap over sentences and seeds.

The usual paired test resamples the sentences of one training a side, and takes what another seed would have changed for
a difference of the methods.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmfusion.errors import InputError
from lmfusion.scoring.bleu import SEED, SEED_VARIABLE, References, reference_streams
from lmfusion.scoring.bleu_metric import make_metric
from lmfusion.scoring.significance import interval
from lmfusion.scoring.streaming import StreamingChrF

SAMPLES = 1000
ENOUGH_SEEDS = 3
"""A standard deviation of fewer is not told."""
Counts = NDArray[np.float32]


@dataclass(frozen=True)
class Row:
    """The scores of a row of trainings that differ in their seeds, 0..100."""

    scores: tuple[float, ...]

    @property
    def mean(self) -> float:
        """Return the mean over seeds."""
        return float(np.mean(self.scores))

    @property
    def deviation(self) -> float | None:
        """Return the standard deviation over seeds (n - 1), from three seeds on."""
        return float(np.std(self.scores, ddof=1)) if len(self.scores) >= ENOUGH_SEEDS else None

    def shown(self) -> str:
        """Return the mean, and from three seeds on the deviation, as text."""
        seeds = f"{len(self.scores)} seed{'s' if len(self.scores) > 1 else ''}"
        spread = "" if self.deviation is None else f" ± {self.deviation:.2f}"
        return f"{self.mean:.2f}{spread} ({seeds})"


@dataclass(frozen=True)
class SeedsResult:
    """A metric of a system and of the baseline, and the difference of their means."""

    metric: str
    system: Row
    baseline: Row
    difference: float
    interval: tuple[float, float]
    """95% interval of the difference among samples of seeds and sentences."""
    signature: str

    @property
    def is_beyond_chance(self) -> bool:
        """Tell whether the interval leaves out 0."""
        return not self.interval[0] <= 0 <= self.interval[1]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**asdict(self), "interval": list(self.interval), "beyond_chance": self.is_beyond_chance}


def compare(
    system: Sequence[Sequence[str]],
    baseline: Sequence[Sequence[str]],
    references: References,
    *,
    samples: int = SAMPLES,
    language_pair: str | None = None,
    tokenizer: str | None = None,
) -> list[SeedsResult]:
    """Compare two rows by BLEU and chrF2: each sample draws seeds of either row, then sentences, the same for both.

    Args:
        system: for each seed the hypotheses, one per sentence.
        baseline: the same of the other row; it may have another number of seeds.
        references: one per sentence, or several sequences of them.
        samples: how many are drawn, seeded as sacreBLEU's tests are.
        language_pair, tokenizer: as :func:`lmfusion.scoring.bleu.score` takes them.

    Returns:
        The result for BLEU, then for chrF2.

    Raises:
        InputError: a row has no seed, or numbers of sentences differ.
    """
    for name, row in (("the system", system), ("the baseline", baseline)):
        if not row:
            raise InputError(f"{name} has no hypotheses.")
        for number, hypotheses in enumerate(row, start=1):
            reference_streams(hypotheses, references, f"{name}, file {number},")
    streams = reference_streams(system[0], references)
    return [
        _compared(name, metric, system, baseline, streams, samples)
        for name, metric in (("BLEU", make_metric(language_pair, tokenizer)), ("chrF2", StreamingChrF()))
    ]


def _compared(name: str, metric: Any, system: Any, baseline: Any, streams: Any, samples: int) -> SeedsResult:
    counts: list[list[Counts]] = [
        [np.array(metric._extract_corpus_statistics(each, streams), dtype=np.float32) for each in row]
        for row in (system, baseline)
    ]
    ours, theirs = (Row(tuple(_score(metric, each.sum(0)) for each in row)) for row in counts)
    seed = os.environ.get(SEED_VARIABLE, SEED).lower()
    generator = np.random.default_rng(None if seed == "none" else int(seed))
    sampled = np.array([_sampled_difference(metric, counts, generator) for _ in range(samples)])
    signature = metric.get_signature()
    signature.update("seed", seed)
    signature.update("bs", samples)
    return SeedsResult(name, ours, theirs, ours.mean - theirs.mean, interval(sampled), f"{name}|{signature}")


def _sampled_difference(metric: Any, counts: list[list[Counts]], generator: np.random.Generator) -> float:
    seeds = [generator.choice(len(row), size=len(row)) for row in counts]
    sentences = generator.choice(len(counts[0][0]), size=len(counts[0][0]))
    means = []
    for row, drawn in zip(counts, seeds):
        # A seed that is drawn twice has the same score twice.
        scores = {number: _score(metric, row[number][sentences].sum(0)) for number in set(drawn.tolist())}
        means.append(np.mean([scores[number] for number in drawn.tolist()]))
    return float(means[0] - means[1])


def _score(metric: Any, counts: Counts) -> float:
    return float(metric._compute_score_from_stats(counts).score)
