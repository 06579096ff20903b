"""The sentence that a comparison ends in."""

from __future__ import annotations

import pytest

from lmfusion.report.verdict import Verdict


def verdict(difference: float, *p_values: float) -> Verdict:
    return Verdict("SRC-ELMO", "baseline", "BLEU", difference, p_values, sentences=100)


@pytest.mark.parametrize(("difference", "p", "holds"), [(1.3, 0.001, True), (1.3, 0.2, False), (-0.4, 0.01, True)])
def test_a_difference_holds_if_it_is_more_than_chance(difference: float, p: float, holds: bool) -> None:
    found = verdict(difference, p)
    assert found.holds is holds
    assert ("above" if difference > 0 else "below") in found.text


def test_nothing_is_made_of_a_difference_that_is_printed_as_none() -> None:
    """Two models that translate nothing can differ in the fourth decimal place in every sample."""
    found = verdict(0.0004, 0.001)
    assert not found.holds
    assert "same" in found.text
    assert "0.00" not in found.text


def test_every_seed_has_to_agree() -> None:
    assert not verdict(2.0, 0.001, 0.3).holds


@pytest.mark.parametrize(("higher", "holds"), [(0.02, False), (4.3, True)])
def test_of_two_systems_that_are_of_no_use_none_is_called_better(higher: float, holds: bool) -> None:
    found = Verdict("SRC-ELMO", "baseline", "BLEU", 0.02, [0.001], sentences=100, higher=higher)
    assert found.holds is holds
    assert (f"{higher} BLEU" in found.text) is not holds
