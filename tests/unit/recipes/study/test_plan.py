"""What a study finds in its folder, beside what is committed."""

from __future__ import annotations

import dataclasses
import json
import math
from pathlib import Path

import pytest
from study.budget import PROTOCOL
from study.plan import Cell, Plan
from study.results import Results
from study.search import Setting, Tried
from study.task import TASKS

COMMITTED, OWN = Tried(Setting(0.3, 0.0, 8000, 0.003), 1.5), Tried(Setting(0.1, 0.0, 4000, 0.003), 1.25)
CELL = Cell("shared", 10000, 1)


def leave(mark: str, text: str) -> None:
    """Leave a job's mark."""
    Path(mark).parent.mkdir(parents=True, exist_ok=True)
    Path(mark).write_text(text, encoding="utf-8")


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """A study that has tried and chosen something."""
    plan = Plan(tmp_path / "out", TASKS["debian_ende"], PROTOCOL, ("shared",), Results(tmp_path / "kept"))
    leave(plan.mark("choice", CELL), OWN.to_json())
    leave(plan.mark("try", CELL, 1), OWN.to_json())
    return plan


def test_what_is_committed_goes_before_what_was_found_here(plan: Plan) -> None:
    assert (plan.chosen(), plan.tries()) == ({("shared", 10000): OWN}, {("shared", 10000, 1): OWN})
    losses = {COMMITTED.setting.name: COMMITTED.bits}
    choice = {"row": "shared", "size": 10000, **dataclasses.asdict(COMMITTED.setting), "bits_per_character": losses}
    plan.results.describe({}, [choice], {("shared", 10000, 1): COMMITTED})
    assert plan.chosen() == {("shared", 10000): COMMITTED}
    assert plan.tries() == {("shared", 10000, 1): COMMITTED}
    plan.results.describe({}, plan.choices(), {})
    assert plan.results.choices() == [choice], "one's own does not take its place"


def test_a_mark_that_is_being_written_is_no_configuration(plan: Plan) -> None:
    leave(f"{plan.mark('try', CELL, 4)}.partial", "")
    assert plan.tries() == {("shared", 10000, 1): OWN}


def test_a_configuration_that_diverged_has_no_loss_in_what_is_committed(plan: Plan) -> None:
    diverged = Tried(Setting(0.4, 0.0, 8000, 0.003), math.inf)
    leave(plan.mark("try", CELL, 2), diverged.to_json())
    (choice,) = json.loads(json.dumps(plan.choices(), allow_nan=False))
    assert choice["bits_per_character"] == {OWN.setting.name: OWN.bits, diverged.setting.name: None}
