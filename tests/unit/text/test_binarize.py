"""Which pairs are trained on, by their numbers of symbols."""

from __future__ import annotations

import pytest

from lmfusion.text.binarize import judge_pair


@pytest.mark.parametrize(
    ("source", "target", "max_length", "max_ratio", "verdict"),
    [
        ("a b c", "a", 3, 0, "kept"),
        ("a", "a b c d", 3, 0, "dropped_long"),
        ("a b c", "a", 3, 3, "kept"),
        ("a", "a b c", 3, 2.5, "dropped_ratio"),
        ("", "a", 3, 0, "dropped_empty"),
        ("a", "", 3, 0, "dropped_empty"),
    ],
)
def test_a_pair_may_be_as_long_and_as_unequal_as_is_asked_for(
    source: str, target: str, max_length: int, max_ratio: float, verdict: str
) -> None:
    assert judge_pair(source, target, max_length, max_ratio) == verdict
