"""The plan of a folder of runs: updates that fit into the minutes, and what is another plan."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from lmfusion import InputError
from lmfusion.rows import amounts, plan
from lmfusion.rows.plan import Plan
from lmfusion.text.prepared import Prepared

ROWS = {"lm": 0.2, "baseline": 0.3, "src_elmo": 0.5}


def minutes_of(made: Plan, seconds: dict[str, float], jobs: int) -> float:
    """How long a plan takes by the seconds of its updates, jobs side by side at full speed."""
    lms = [made_of * int(made.numbers["LM_UPDATES"]) for name, made_of in seconds.items() if name == "lm"]
    rows = [made_of * int(made.numbers["S2S_UPDATES"]) for name, made_of in seconds.items() if name != "lm"]
    return sum(max(sum(stage) / jobs, max(stage)) for stage in (lms, rows) if stage) / 60


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("minutes", [20, 40])
def test_updates_fit_into_the_minutes_and_use_most_of_them(fresh: Plan, minutes: float, jobs: int) -> None:
    made = plan.within(fresh, minutes, 2, ROWS, jobs)
    assert 0.65 * (minutes - 2) < minutes_of(made, ROWS, jobs) < minutes - 2


def test_there_are_no_more_updates_than_the_text_is_worth(fresh: Plan) -> None:
    made = plan.within(fresh, 100_000, 0, ROWS, 1)
    assert made.numbers == fresh.numbers


def least_of(refused: InputError) -> int:
    """The minutes that a refusal asks for."""
    (minutes,) = re.findall(r"(\d+) minutes? at least", str(refused))
    return int(minutes)


def test_too_few_minutes_are_refused_and_those_that_are_asked_for_are_enough(fresh: Plan) -> None:
    with pytest.raises(InputError, match=r"--minutes 0\.5") as refused:
        plan.within(fresh, 0.5, 1.5, ROWS, 1)
    least = least_of(refused.value)
    made = plan.within(fresh, least, 1.5, ROWS, 1)
    assert min(int(made.numbers[name]) for name in ("LM_UPDATES", "S2S_UPDATES")) >= plan.LEAST
    with pytest.raises(InputError):
        plan.within(fresh, least - 1, 1.5, ROWS, 1)


def test_of_one_row_no_fewer_are_asked_for_and_updates_may_be_set_instead(fresh: Plan) -> None:
    with pytest.raises(InputError) as refused:
        plan.within(fresh, 0.5, 1.5, {"baseline": 2.0}, 1)
    assert least_of(refused.value) == math.ceil(1.5 + plan.LEAST * 2 / 60 / plan.RESERVE) == 6
    assert "baseline takes" in str(refused.value)
    assert "--rows" not in str(refused.value)
    assert "--set S2S_UPDATES=" in str(refused.value)
    assert "LM_UPDATES" not in str(refused.value)


def test_a_language_model_that_does_not_fit_may_be_left_out() -> None:
    with pytest.raises(InputError, match="lm takes") as refused:
        plan.check_minutes(0.5, 0, {"lm": 2.0}, 1)
    assert "--rows" in str(refused.value)


def test_of_several_all_are_named_and_fewer_rows_help(fresh: Plan) -> None:
    with pytest.raises(InputError) as refused:
        plan.within(fresh, 0.5, 1.5, ROWS, 1)
    for named in ("language model lm", "baseline", "src_elmo", "take ", "--rows", "LM_UPDATES=", "S2S_UPDATES="):
        assert named in str(refused.value)


@pytest.mark.parametrize(("seconds", "is_named"), [(ROWS, True), ({"baseline": 0.3, "lstm": 0.4}, False)])
def test_a_language_model_is_warned_of_only_where_one_is_trained(
    fresh: Plan, seconds: dict[str, float], is_named: bool
) -> None:
    made = plan.within(fresh, 5, 1, seconds, 1)
    said = plan.what_is_cut(fresh.numbers, made.numbers, plan.whole_minutes(fresh, 1, seconds, 1), seconds)
    assert f"rows {int(made.numbers['S2S_UPDATES']) / int(fresh.numbers['S2S_UPDATES']):.0%}" in said
    assert ("language model" in said) == is_named


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_minutes_for_all_updates_are_enough_for_them(fresh: Plan, jobs: int) -> None:
    whole = plan.whole_minutes(fresh, 3, ROWS, jobs)
    assert plan.within(fresh, 3 * whole, 3, ROWS, jobs).numbers == fresh.numbers
    assert minutes_of(fresh, ROWS, jobs) < whole - 3 < 1.5 * minutes_of(fresh, ROWS, jobs)


def test_a_schedule_that_the_minutes_cut_short_has_no_high_dropout(data: Prepared) -> None:
    whole = plan.new(data, 1, {}, {})
    seconds, wanted = {"baseline": 0.3}, int(whole.numbers["S2S_UPDATES"])
    found = {}
    for share in (0.9, 0.3):
        made = plan.within(whole, share * plan.whole_minutes(whole, 0, seconds, 1), 0, seconds, 1)
        found[round(int(made.numbers["S2S_UPDATES"]) / wanted, 1)] = float(made.numbers["S2S_DROPOUT"])
    assert found == {0.9: 0.3, 0.3: 0.2}
    by_hand = plan.within(plan.new(data, 1, {}, {"S2S_DROPOUT": "0.4"}), 20, 0, ROWS, 1)
    assert by_hand.numbers["S2S_DROPOUT"] == "0.4"


def test_what_is_set_by_hand_is_not_changed_by_the_minutes(data: Prepared) -> None:
    made = plan.within(plan.new(data, 1, {}, {"S2S_UPDATES": "4000", "S2S_LR": "0.1"}), 20, 0, ROWS, 1)
    assert (made.numbers["S2S_UPDATES"], made.numbers["S2S_LR"]) == ("4000", "0.1")


def test_the_layers_of_an_lstm_follow_from_the_text_and_can_be_set(data: Prepared) -> None:
    much = replace(data, pairs=300_000)
    layers = [plan.new(much, 1, {}, given).numbers["LSTM_LAYERS"] for given in ({}, {"LSTM_LAYERS": "4"})]
    assert layers == ["3", "4"]


@pytest.mark.parametrize("pairs", [1, 2_500, 2_501, 50_000, 10**6, 10**9])
def test_schedules_end_and_validate_whatever_the_amount(data: Prepared, pairs: int) -> None:
    made = {name: float(value) for name, value in amounts.numbers(replace(data, pairs=pairs)).items()}
    assert 0 < made["S2S_WARMUP"] < made["S2S_UPDATES"]
    assert made["S2S_UPDATES"] / made["S2S_VALIDATE_EVERY"] >= 16
    assert made["S2S_DIM"] % made["S2S_HEADS"] == 0


def test_a_plan_is_read_as_it_was_written(fresh: Plan, tmp_path: Path) -> None:
    assert plan.read(tmp_path / "none") is None
    fresh.save(tmp_path / "out")
    found = plan.read(tmp_path / "out")
    assert found == fresh
    plan.check_same(found, fresh, tmp_path)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seed": 2}, "--seed"),
        ({"data": "other"}, "DATA"),
        ({"set": {"S2S_LR": "1"}}, "set"),
        ({"language_models": {"src": "x"}}, "--src-lm"),
    ],
)
def test_another_plan_is_refused_by_what_differs(
    fresh: Plan, tmp_path: Path, change: dict[str, object], named: str
) -> None:
    with pytest.raises(InputError, match=named) as refused:
        plan.check_same(fresh, replace(fresh, **change), tmp_path)  # type: ignore[arg-type]
    assert "{" not in str(refused.value)


@pytest.mark.parametrize("content", ["", "[]", '{"data": 1}', json.dumps({"seed": 1, "more": 2})])
def test_a_damaged_plan_is_one_line(tmp_path: Path, content: str) -> None:
    (tmp_path / "plan.json").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=r"plan\.json"):
        plan.read(tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        {"BASH_ENV": "/tmp/evil.sh"},
        {"PATH": "."},
        {"LD_PRELOAD": "1"},
        {"S2S_LR": "$(touch evil)"},
        {"S2S_UPDATES": 3},
        {"LM_UPDATES": None},
        [],
        {},
    ],
)
def test_a_plan_of_a_stranger_has_numbers_alone(fresh: Plan, tmp_path: Path, change: dict[str, object]) -> None:
    """They become the environment of bash."""
    fresh.save(tmp_path)
    content = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    content["numbers"] = {**content["numbers"], **change} if change else change
    (tmp_path / "plan.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(InputError, match=r"plan\.json"):
        plan.read(tmp_path)


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_minutes_hold_the_other_direction_and_its_translation(fresh: Plan, jobs: int) -> None:
    """The model of the other direction has the rows' updates, before them; a line takes it a tenth of an update."""
    seconds = {"lm": 0.2, "reverse": 0.3, "lstm_back_translation": 0.4, "src_elmo": 0.5}
    for minutes in (40, 80):
        made = plan.within(fresh, minutes, 2, seconds, jobs)
        lines, updates = int(made.numbers["MADE_UP"]), int(made.numbers["S2S_UPDATES"])
        alone = {name: taken for name, taken in seconds.items() if name != "reverse"}
        whole = minutes_of(made, alone, jobs) + (0.3 * updates + 0.03 * lines) / 60
        assert 0.65 * (minutes - 2) < whole < minutes - 2
        assert 0 < lines < 20_000
    assert plan.within(fresh, 10_000, 0, seconds, jobs).numbers == fresh.numbers
    assert fresh.numbers["MADE_UP"] == "20000"


def test_more_lines_than_the_minutes_hold_are_refused(data: Prepared) -> None:
    with pytest.raises(InputError, match="MADE_UP"):
        plan.within(plan.new(data, 1, {}, {"MADE_UP": "100000"}), 40, 0, {"reverse": 0.3, "lstm": 0.4}, 1)


@pytest.mark.parametrize("given", [{"S2S_UPDATE": "3"}, {"S2S_UPDATES": "many"}])
def test_a_number_that_is_none_is_named(data: Prepared, given: dict[str, str]) -> None:
    with pytest.raises(InputError, match=next(iter(given))):
        plan.new(data, 1, {}, given)
