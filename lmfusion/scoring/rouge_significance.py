"""Is a difference in ROUGE more than chance? Paired bootstrap over summaries (Koehn 2004), as sacreBLEU tests BLEU.

https://aclanthology.org/W04-3250. Both systems are scored on the same samples of the test set, drawn with replacement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmfusion.errors import InputError
from lmfusion.scoring import rouge, unicode_words
from lmfusion.scoring.significance import interval, p_value

SAMPLES = 1000
SEED = 12345
"""sacreBLEU's, so that its samples of a test set are also these."""


@dataclass(frozen=True)
class PairedRouge:
    """A system's F1 (0..100) among samples of the test set, and whether it differs from the baseline's."""

    name: str
    metric: str
    """rouge1, rouge2 or rougeL."""
    f1: float
    mean: float
    """Mean F1 over the samples."""
    ci: float
    """Half the width of their 95% interval: F1 = mean ± ci."""
    p_value: float | None
    """Of the difference to the baseline; None for the baseline itself, 1 for a system that equals it."""
    signature: str
    difference_interval: tuple[float, float] | None = None
    """95% interval of the difference to the baseline among the samples; None for the baseline itself."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**asdict(self), "difference_interval": self.difference_interval and list(self.difference_interval)}


def paired_bootstrap(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    sentence_marker: str | None = "\n",
    exceptions: Mapping[str, str] | None = None,
    like: str = rouge.PERL,
    words: str = unicode_words.ASCII,
) -> list[PairedRouge]:
    """Test each system against the baseline by paired bootstrap resampling.

    Args:
        baseline: one summary per reference.
        systems: the same of each other system, by name.
        references: one per summary.
        sentence_marker, exceptions, like, words: as :func:`lmfusion.scoring.rouge.score` takes them.

    Returns:
        The baseline (named "baseline"), then the systems in their order; of each ROUGE-1, -2 and -L.

    Raises:
        InputError: as :func:`lmfusion.scoring.rouge.score`, for any of them; or a system is called "baseline"; or there
            is none.
    """
    if not systems or "baseline" in systems:
        raise InputError(f'paired_bootstrap needs one or more systems not called "baseline", but got {list(systems)}.')
    named = {"baseline": baseline, **systems}
    f1 = {
        name: _f1(rouge.score_pairs(texts, references, sentence_marker, exceptions, like, words))
        for name, texts in named.items()
    }
    samples = np.random.default_rng(SEED).choice(len(references), size=(SAMPLES, len(references)), replace=True)
    signature = rouge.signature(sentence_marker, exceptions or {}, {"bs": SAMPLES, "seed": SEED}, like, words)
    return [
        _compare(name, metric, values[:, column], f1["baseline"][:, column], samples, signature)
        for name, values in f1.items()
        for column, metric in enumerate(rouge.METRICS)
    ]


def _f1(pairs: Sequence[Mapping[str, rouge.PairScore]]) -> NDArray[np.float64]:
    """Return an array of summaries x metrics, 0..100."""
    return 100 * np.array([[pair[metric].f1 for metric in rouge.METRICS] for pair in pairs])


def _compare(
    name: str,
    metric: str,
    ours: NDArray[np.float64],
    baseline: NDArray[np.float64],
    samples: NDArray[np.int64],
    signature: str,
) -> PairedRouge:
    means = ours[samples].mean(axis=1)
    low, high = interval(means)
    score, mean, ci = float(ours.mean()), float(means.mean()), (high - low) / 2
    if name == "baseline":
        return PairedRouge(name, metric, score, mean, ci, None, signature)
    differences = means - baseline[samples].mean(axis=1)
    p = 1.0 if np.array_equal(ours, baseline) else p_value(score - float(baseline.mean()), differences)
    return PairedRouge(name, metric, score, mean, ci, p, signature, interval(differences))
