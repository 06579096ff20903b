"""Pooling a sentence's states into one vector: by the family, wherever the padding stands."""

from __future__ import annotations

import pytest
import torch

from lmfusion.lm.interface import FAMILIES
from lmfusion.lm.pooling import POOLINGS

STATES = torch.tensor([[[1.0, 10.0], [3.0, 20.0], [8.0, 60.0]], [[2.0, 5.0], [4.0, 7.0], [6.0, 9.0]]])
BY_HAND = {"mean": [2.0, 15.0], "first": [1.0, 10.0], "last": [3.0, 20.0]}


@pytest.mark.parametrize("shift", [0, 1], ids=["padding at the right", "padding at the left"])
@pytest.mark.parametrize("name", BY_HAND)
def test_padding_has_no_part_in_the_pooled_vector(name: str, shift: int) -> None:
    padding = torch.tensor([[False, False, True], [False, False, False]])
    states = torch.where(padding.unsqueeze(-1), torch.tensor(99.0), STATES)
    pooled = POOLINGS[name](states.roll(shift, 1), padding.roll(shift, 1))
    assert pooled[0].tolist() == BY_HAND[name]


def test_without_padding_all_positions_count() -> None:
    padding = torch.zeros(2, 3, dtype=torch.bool)
    assert POOLINGS["mean"](STATES, padding)[0].tolist() == [4.0, 30.0]
    assert POOLINGS["last"](STATES, padding)[1].tolist() == [6.0, 9.0]


def test_a_family_that_reads_left_to_right_pools_its_last_state() -> None:
    ways = {name: family.pooling for name, family in FAMILIES.items()}
    assert {ways["causal"], ways["recurrent"], ways["huggingface_causal"]} == {"last"}
    assert {ways["cloze"], ways["elmo"], ways["static"]} == {"mean"}
