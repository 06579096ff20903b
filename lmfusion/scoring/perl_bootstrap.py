"""Bootstrap resampling of ROUGE-1.5.5, number by number.

Its resampling is no other in every run: sample k draws with Perl's generator (48-bit linear congruential, the
``drand48`` of POSIX) seeded with k. So the averages and intervals that it prints can be had again exactly.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

SAMPLES = 1000
TAIL = 25
"""Samples beyond each end of a 95% interval."""

_MULTIPLIER, _INCREMENT, _SEED_TAIL = np.uint64(0x5DEECE66D), np.uint64(0xB), np.uint64(0x330E)
_BITS = 48
_MASK = np.uint64((1 << _BITS) - 1)


def resample(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Draw 1000 samples with replacement, each as large as the set, and return their means.

    Args:
        values: pairs x measures. The script sorts its pairs by name; here they are named 1, 2, 3, … in their order.

    Returns:
        1000 x measures, each measure's means in ascending order.
    """
    count = len(values)
    values = values[sorted(range(count), key=lambda pair: f"{pair + 1}.")]
    state = (np.arange(SAMPLES, dtype=np.uint64) << np.uint64(16)) + _SEED_TAIL
    total = np.zeros((SAMPLES, values.shape[1]))
    for _ in range(count):  # one draw of every sample at a time: added up in the script's order, and so rounded alike
        state = (state * _MULTIPLIER + _INCREMENT) & _MASK
        total += values[(count * np.ldexp(state.astype(np.float64), -_BITS)).astype(np.int64)]
    return np.sort(total / count, axis=0)


def summary(means: NDArray[np.float64]) -> tuple[list[float], list[float], list[float]]:
    """Return mean, lower and upper end of the 95% interval of each measure, to the script's five decimals.

    Args:
        means: what :func:`resample` returned: 1000 x measures, ascending.
    """
    middle = np.add.accumulate(means, axis=0)[-1] / SAMPLES
    return _rounded(middle), _rounded(means[TAIL]), _rounded(means[SAMPLES - 1 - TAIL])


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [float(f"{value:.5f}") for value in values]
