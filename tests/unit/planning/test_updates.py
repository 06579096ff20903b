"""Updates, epochs and time of a plan, without counting what its model costs."""

from __future__ import annotations

from typing import Any

import pytest

import lmfusion
from lmfusion.planning import plan as planning
from lmfusion.planning.cost import Cost
from lmfusion.planning.counting import Saved
from lmfusion.planning.machines import find
from lmfusion.planning.plan import Asked, Plan

lmfusion.install()
LM = "--arch transformer_lm --decoder-embed-dim 16 --decoder-ffn-embed-dim 24 --decoder-layers 1 "
LM += "--decoder-attention-heads 2 --max-tokens 40 --max-update 5 "


@pytest.fixture
def without_counting(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Plan a model whose tokens cost 6 multiply-adds to train on, 2 to read and 5 to write."""
    monkeypatch.setattr(planning, "count", lambda *_: Cost(6, 2, 5, Saved(0, 0, 0)))

    def plan(flags: str, **given: Any) -> Plan:
        asked = {"types": 50, "data": None, "tokens": None, "length": 10, "gpus": 1, "beam": 1, "share": 0.5}
        return planning.make_plan(Asked(flags=flags.split(), machine=find("a100"), **{**asked, **given}))

    return plan


@pytest.mark.parametrize(
    ("limits", "tokens", "updates", "ended"),
    [
        ("--max-epoch 3", 4001, 300, 3),  # and a token, with which fairseq ends the last epoch
        ("--max-epoch 3 --max-update 150", 4000, 150, 1),
        ("--max-epoch 3 --max-update 500", 4001, 300, 3),
        ("--max-update 250", 4000, 250, 2),
        ("--max-update 250", None, 250, 0),  # nobody knows
    ],
)
def test_every_epoch_that_ends_is_saved(
    without_counting: Any, limits: str, tokens: int | None, updates: int, ended: int
) -> None:
    found = without_counting(LM.replace("--max-update 5", limits), tokens=tokens)
    assert (found.updates, found.checkpoints) == (updates, 2 + ended)


@pytest.mark.parametrize(
    ("sizes", "tokens"),
    [("--max-tokens 40 --batch-size 3", 30), ("--batch-size 3", 30), ("--max-tokens 20 --batch-size 3", 20)],
)
def test_of_two_limits_a_batch_keeps_both(without_counting: Any, sizes: str, tokens: int) -> None:
    assert without_counting(LM.replace("--max-tokens 40", sizes)).tokens_per_update == tokens


def test_all_hypotheses_of_a_beam_are_written_at_the_peak_of_the_precision(without_counting: Any) -> None:
    pairs = "--arch transformer_tiny --max-tokens 40 --max-update 5 "
    assert [without_counting(pairs, beam=beam).write_macs for beam in (1, 4)] == [5, 20]
    assert without_counting(LM, beam=4).write_macs == 5  # which nobody searches with
    for flags, peak in (("", 19.5e12), ("--bf16", 312e12), ("--amp", 312e12)):
        assert without_counting(pairs + flags, gpus=2).tokens_per_second == 2 * peak * 0.5 / (2 * 6)
