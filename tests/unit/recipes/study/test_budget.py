"""--budget: presets, and changes to their numbers."""

from __future__ import annotations

import dataclasses

import pytest
from study import budget

from lmfusion.errors import InputError


def test_a_preset_can_be_changed_number_by_number_and_is_then_another_budget() -> None:
    assert budget.read(["gpu"]) is budget.GPU
    changed = budget.read(["gpu", "dropout=0.4", "patience=7", "updates=2500:10,all:20"])
    assert (changed.dropout, changed.patience, changed.name) == (0.4, 7, "custom")
    assert (changed.most_updates(2500), changed.most_updates(9999)) == (10, 20)
    assert changed.seeds == budget.GPU.seeds
    assert budget.read(["patience=3"]).dropout == budget.CPU.dropout, "cpu where no preset is named"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["tpu"], "--budget tpu: give cpu, cpu-long, cpu-others, protocol, gpu"),
        (["cpu", "gpu"], "--budget cpu gpu: give cpu, cpu-long, cpu-others, protocol, gpu"),
        (["beams=3"], "--budget beams=3: there is no such number. There are: updates, dropout"),
        (["patience=none"], "--budget patience=none: give a whole number above 0"),
        (["dropout=1.5"], "--budget dropout=1.5: give a dropout from 0 up to below 1"),
        (["updates=2500"], "--budget updates=2500: give SIZE:NUMBER, with commas between them, e.g. 2500:1750"),
        (["learning_rates=all:7"], "--budget learning_rates=all:7: give a learning rate above 0 and below 1"),
        (["language_models=mine"], "--budget language_models=mine: give shipped or pretrained"),
    ],
)
def test_what_is_no_number_is_named(words: list[str], said: str) -> None:
    with pytest.raises(InputError) as error:
        budget.read(words)
    assert str(error.value).startswith(said)


def test_cpu_long_differs_from_cpu_in_updates_alone() -> None:
    long, cpu = budget.CPU_LONG.numbers(), budget.CPU.numbers()
    assert {name for name in cpu if cpu[name] != long[name]} == {"updates"}
    assert (budget.CPU_LONG.most_updates(10000), budget.CPU.most_updates(10000)) == (8000, 4000)
    assert budget.CPU_LONG.most_updates(38573) == budget.CPU.most_updates(38573)


def test_which_runs_there_are_is_not_part_of_the_numbers_but_the_tuning_seed_is() -> None:
    assert budget.CPU.numbers() == budget.read(["cpu"]).numbers()
    assert budget.CPU.numbers()["tuned_by_seed"] is None
    assert budget.GPU.numbers()["tuned_by_seed"] == 1
    assert "sizes" not in budget.GPU.numbers()
    later = dataclasses.replace(budget.PROTOCOL, seeds=(2,))
    assert later.numbers() == budget.PROTOCOL.numbers(), "a later seed alone belongs to the same study"
