"""The p-value of a paired bootstrap test, as sacreBLEU computes it, and the interval of the difference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def p_value(found: float, sampled: NDArray[np.float64]) -> float:
    """Return how often a sample's absolute difference is further from its mean than the test set's from 0.

    Args:
        found: difference of two systems' scores on the test set.
        sampled: their difference on each sample of it, in the same unit.

    Returns:
        0..1, and never 0: the test set itself counts as one sample. About half of a two-sided p: of equal systems some
        11 of 100 are below 0.05, not 5. 1 where the two have the same score on the test set
        and on every sample; sacreBLEU gives them the least there is, for no sample is further away.
    """
    if found == 0 and not sampled.any():
        return 1.0
    distances = np.abs(sampled)
    beyond = distances - distances.mean() > abs(found)
    return float((beyond.sum() + 1) / (len(sampled) + 1))


def interval(sampled: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the 95% interval of values among bootstrap samples: a fortieth of them is left out at each."""
    ordered, out = np.sort(sampled), len(sampled) // 40
    return float(ordered[out]), float(ordered[-1 - out])
