"""The p-value of a paired bootstrap, worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest

from lmfusion.scoring.significance import p_value


@pytest.mark.parametrize(
    ("found", "sampled", "expected"),
    [
        # Their mean distance from 0 is 5/3; one is further than 0 beyond it, and the test set counts as another.
        (0.0, [1.0, -1.0, 3.0], 2 / 4),
        (0.0, [0.0, 0.0, 0.0], 1.0),
        # None of them is more than 2 beyond 5/3.
        (-2.0, [1.0, -1.0, 3.0], 1 / 4),
    ],
)
def test_it_is_the_share_of_samples_further_from_their_mean(
    found: float, sampled: list[float], expected: float
) -> None:
    assert p_value(found, np.array(sampled)) == expected
