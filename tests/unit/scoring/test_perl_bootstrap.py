"""Bootstrap samples against the C library's drand48, which is the generator that Perl has had built in since 5.20."""

from __future__ import annotations

import ctypes

import numpy as np
import pytest

from lmfusion.scoring import perl_bootstrap

LIBC = ctypes.CDLL(None)
LIBC.drand48.restype = ctypes.c_double


def by_hand(values: list[float], sample: int) -> float:
    """Mean of one sample: pairs in the order of their names "1.", "10.", "11.", "2.", …"""
    ordered = [values[number - 1] for number in map(int, sorted(map(str, range(1, len(values) + 1))))]
    LIBC.srand48(sample)
    return sum(ordered[int(LIBC.drand48() * len(values))] for _ in values) / len(values)


@pytest.mark.parametrize("count", [1, 2, 12, 101])
def test_samples_are_those_of_the_script(count: int) -> None:
    values = [number**2 / count**2 for number in range(count)]
    expected = sorted(by_hand(values, sample) for sample in range(1000))
    means = perl_bootstrap.resample(np.array(values)[:, None])
    assert means.shape == (1000, 1)
    np.testing.assert_allclose(means[:, 0], expected, rtol=1e-12)


def test_interval_leaves_out_25_samples_at_each_end() -> None:
    means = np.sort(np.random.default_rng(0).permutation(1000)[:, None] / 1000, axis=0)
    assert perl_bootstrap.summary(means) == ([0.4995], [0.025], [0.974])


def test_interval_is_about_two_standard_errors_wide() -> None:
    values = np.random.default_rng(1).normal(0.4, 0.1, size=(2000, 1))
    (middle,), (low,), (high,) = perl_bootstrap.summary(perl_bootstrap.resample(values))
    error = values.std() / 2000**0.5
    assert middle == pytest.approx(values.mean(), abs=0.2 * error)
    assert high - low == pytest.approx(2 * 1.96 * error, rel=0.1)
