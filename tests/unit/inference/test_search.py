"""The search that translates lines: which settings it has, and what is refused of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from lmfusion.errors import InputError
from lmfusion.inference.translate_lines import Search


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        ({"beam": 0}, "--beam 0"),
        ({"nbest": 0}, "--nbest 0"),
        ({"nbest": 3, "beam": 2}, "--nbest 3"),
        ({"batch_size": -1}, "--batch-size -1"),
        ({"settings": {"lenpen": float("nan")}}, "lenpen nan"),
        ({"settings": {"max_len_b": -5}}, "max_len_b -5"),
        ({"settings": {"no_repeat_ngram_size": -1}}, "no_repeat_ngram_size -1"),
        ({"settings": {"min_len": True}}, "min_len True"),
        ({"settings": {"lenpen": "1"}}, "lenpen '1'"),
        ({"settings": {"beems": 3}}, "beems"),
        ({"settings": {"beam": 3}}, "beam"),
        ({"settings": {"nbest": 2}}, "nbest"),
        ({"settings": {"temperature": 0.0}}, "temperature 0"),
        ({"settings": {"lm_path": "lm.pt"}}, "lm_path"),
        ({"settings": {"constraints": "ordered"}}, "constraints"),
        ({"settings": {"prefix_size": 2}}, "prefix_size"),
        ({"settings": {"replace_unk": ""}}, "replace_unk"),
    ],
    ids=str,
)
def test_settings_that_cannot_be_are_refused(flags: dict[str, Any], named: str) -> None:
    with pytest.raises(InputError, match=named):
        Search(**flags)


def test_the_least_values_of_settings_are_settings() -> None:
    numbers = {"max_len_b": np.int64(20), "lenpen": np.float32(0.5), "lm_weight": 0.0}
    assert Search(settings=numbers).settings == numbers
    least = {"max_len_a": 0, "max_len_b": 0, "min_len": 0, "no_repeat_ngram_size": 0, "temperature": 1e-6}
    assert Search(settings=least).settings == least
