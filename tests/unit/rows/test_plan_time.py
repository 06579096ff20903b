"""The plan's minutes, calculated by hand, and the language models that it knows again."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.rows import plan
from lmfusion.rows.plan import Plan
from lmfusion.text.prepared import Prepared


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_row_is_as_fast_as_alone_wherever_two_could_run(fresh: Plan, jobs: int) -> None:
    made = plan.within(fresh, 20, 0, {"baseline": 0.5}, jobs)
    assert int(made.numbers["S2S_UPDATES"]) == pytest.approx(20 * 60 * 0.85 / 0.5, abs=1)


@pytest.mark.parametrize("spent", [0, 3])
def test_all_minutes_are_those_over_and_of_updates_and_of_lines_translated(fresh: Plan, spent: float) -> None:
    """A line takes a tenth of an update of the other direction, and 0.85 of the time are left to all this."""
    seconds = {"reverse": 0.3, "lstm_back_translation": 0.4}
    working = 8_000 * (0.3 + 0.4) + 20_000 * 0.1 * 0.3
    assert plan.whole_minutes(fresh, spent, seconds, 1) == pytest.approx(spent + working / 60 / 0.85)


@pytest.mark.parametrize(
    ("fitting", "named", "unnamed"),
    [
        ({"LM_UPDATES": "1000", "S2S_UPDATES": "400"}, ["rows 40%"], "language model"),
        ({"LM_UPDATES": "400", "S2S_UPDATES": "1000"}, ["language models 40%", "hardly"], "rows"),
    ],
)
def test_one_kind_that_is_cut_is_told_of_though_the_other_is_not(
    fitting: dict[str, str], named: list[str], unnamed: str
) -> None:
    wanted = {"LM_UPDATES": "1000", "S2S_UPDATES": "1000"}
    said = plan.what_is_cut(wanted, fitting, 60, {"lm": 0.2, "baseline": 0.3})
    assert [word for word in named if word not in said] == []
    assert unnamed not in said
    assert plan.what_is_cut(wanted, wanted, 60, {"lm": 0.2, "baseline": 0.3}) == ""


@pytest.mark.parametrize(
    ("changed", "is_another"), [("model.safetensors", True), ("config.json", True), ("README.md", False)]
)
def test_a_model_is_another_by_its_weights_or_settings(
    data: Prepared, tmp_path: Path, changed: str, is_another: bool
) -> None:
    model = tmp_path / "model"
    model.mkdir()
    for name in ("model.safetensors", "config.json", "README.md"):
        (model / name).write_text("{}", encoding="utf-8")
    before = plan.new(data, 1, {"src": model}, {}).language_models
    (model / changed).write_text("[]", encoding="utf-8")
    assert (plan.new(data, 1, {"src": model}, {}).language_models != before) == is_another
