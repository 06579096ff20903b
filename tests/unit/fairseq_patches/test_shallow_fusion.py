"""Language models in fairseq's generators: how far they go, and who may be asked for words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.errors import InputError
from lmfusion.fairseq_patches.shallow_fusion import check_generators


def build(task: Any, models: list[Any], lm: Any = None, **flags: Any) -> Any:
    """A generator of up to 200 words, as the patched ``build_generator`` returns it."""
    made = check_generators(lambda *_, **__: SimpleNamespace(max_len=200))
    return made(task, models, SimpleNamespace(lm_path="lm.pt", **flags), None, {"lm_model": lm} if lm else None)


@pytest.fixture
def task(dictionary: Any) -> Any:
    return SimpleNamespace(target_dictionary=dictionary)


def test_a_sentence_ends_where_the_positions_of_the_lm_do(task: Any, make_causal: Any) -> None:
    lm = make_causal(tokens_per_sample=5, max_target_positions=5)
    wrapped = SimpleNamespace(decoder=lm, max_positions=lm.max_positions)
    assert build(task, [], wrapped).max_len == 5
    assert build(task, []).max_len == 200


def test_a_model_that_sees_both_sides_may_score_and_not_generate(task: Any, make_cloze: Any) -> None:
    models = [SimpleNamespace(decoder=make_cloze())]
    assert build(task, models, score_reference=True).max_len == 200
    for flags in ({}, {"score_reference": False}):
        with pytest.raises(InputError, match="both sides"):
            build(task, models, **flags)
