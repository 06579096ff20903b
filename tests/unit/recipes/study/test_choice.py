"""Dropouts by the validation loss."""

from __future__ import annotations

import dataclasses
import math

import pytest
from study import choice, plan
from study.budget import Budget
from study.layout import Setting
from study.task import TASKS

BUDGET = Budget("custom", (10,), (1, 2), ((10, 100),), dropouts=(0.1, 0.2, 0.3), representation_dropouts=(0.0, 0.5))
LOSSES = {Setting(0.1, 0.0): 5.0, Setting(0.2, 0.0): 4.0, Setting(0.3, 0.0): 4.5, Setting(0.2, 0.5): 3.9}


def jobs(row: str, budget: Budget = BUDGET) -> list[plan.Job]:
    return plan.make(budget, TASKS["debian_ende"], [row], pairs=50)


def chosen(row: str, losses: dict[Setting, float], budget: Budget = BUDGET) -> set[Setting]:
    """The settings of the runs that are scored."""
    scored = [job for job in jobs(row, budget) if job.kind == plan.FINAL]
    return {choice.setting_of(job, budget, lambda _, setting: losses[setting], {}) for job in scored}


@pytest.mark.parametrize(
    ("change", "best"),
    [
        ({}, Setting(0.2, 0.5)),
        ({Setting(0.2, 0.5): 4.2}, Setting(0.2, 0.0)),
        ({Setting(0.2, 0.5): 4.0}, Setting(0.2, 0.0)),  # the first of equals
        ({Setting(0.2, 0.0): math.nan, Setting(0.3, 0.5): 4.4}, Setting(0.3, 0.5)),
        ({Setting(0.2, 0.0): 6.0, Setting(0.3, 0.5): 4.6}, Setting(0.3, 0.0)),
    ],
)
def test_the_lowest_validation_loss_decides_for_all_seeds(change: dict[Setting, float], best: Setting) -> None:
    assert chosen("src_elmo", {**LOSSES, **change}) == {best}


def test_a_row_without_a_language_model_has_one_dropout_to_choose() -> None:
    assert chosen("baseline", LOSSES) == {Setting(0.2, 0.0)}


def test_without_grids_nothing_is_chosen_and_no_loss_is_looked_at() -> None:
    single = dataclasses.replace(BUDGET, dropouts=(0.3,), representation_dropouts=(0.1,))
    assert chosen("src_elmo", {}, single) == {Setting(0.3, 0.1)}


def test_the_representation_dropout_is_tried_with_the_dropout_that_was_chosen() -> None:
    (tried,) = [job for job in jobs("src_elmo") if job.kind == plan.REPRESENTATION]
    assert choice.setting_of(tried, BUDGET, lambda _, setting: LOSSES[setting], {}) == Setting(0.2, 0.5)


def test_what_an_earlier_study_chose_stays() -> None:
    before = {("src_elmo", 10): Setting(0.4, 0.4)}
    final = jobs("src_elmo")[-1]
    assert choice.setting_of(final, BUDGET, lambda *_: 1.0, before) == Setting(0.4, 0.4)


def test_choices_are_recorded_with_all_losses() -> None:
    def loss(_: plan.Job, setting: Setting) -> float:
        return LOSSES[setting]

    all_jobs = jobs("src_elmo")
    (entry,) = choice.record(all_jobs, lambda job: choice.setting_of(job, BUDGET, loss, {}), loss)
    assert entry["validation_loss"] == {setting.name: value for setting, value in LOSSES.items()}
    assert (entry["row"], entry["size"], entry["dropout"], entry["representation"]) == ("src_elmo", 10, 0.2, 0.5)
