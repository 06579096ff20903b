"""The numbers of ``lmfusion train --set``: which values are refused before anything is trained."""

from __future__ import annotations

import pytest

from lmfusion.rows import scripts
from lmfusion.rows.settable import is_number, wanted_instead

REFUSED = "S2S_UPDATES=1.5 S2S_UPDATES=0 LM_UPDATES=-3 S2S_DIM=1e2 S2S_DROPOUT=nan S2S_DROPOUT=2 LM_DROPOUT=-0.1 "
REFUSED += "S2S_LR=0 LM_LR=inf BEAM=0 S2S_PATIENCE=-2 S2S_WARMUP=-1 LENPEN=x MAX_RATIO= ELMO_SCALE=0"
TAKEN = "S2S_UPDATES=1 S2S_DROPOUT=0 S2S_DROPOUT=.5 LM_LR=1e-4 S2S_PATIENCE=-1 NO_REPEAT=0 MAX_RATIO=2.5 LENPEN=-0.5"


@pytest.mark.parametrize("word", REFUSED.split())
def test_a_value_that_cannot_be_trained_with_is_refused(word: str) -> None:
    name, _, value = word.partition("=")
    assert wanted_instead(name, value)


@pytest.mark.parametrize("word", TAKEN.split())
def test_other_values_are_taken(word: str) -> None:
    name, _, value = word.partition("=")
    assert not wanted_instead(name, value)


def test_the_recipes_own_numbers_are_taken() -> None:
    numbers = {name: value for name, value in scripts.defaults().items() if is_number(value)}
    assert len(numbers) > 25
    assert not {name for name, value in numbers.items() if wanted_instead(name, value)}
