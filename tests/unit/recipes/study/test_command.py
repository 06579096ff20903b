"""study.sh without Snakemake: what is refused, what is committed, what is reported."""

from __future__ import annotations

import dataclasses
import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from study import __main__ as study
from study import command, recipe, report, results
from study.budget import CPU, PROTOCOL, Budget
from study.plan import Cell, Plan
from study.results import Results
from study.search import Setting, Tried, configuration
from study.task import TASKS

ROOT = Path(__file__).parents[4]
COMMITTED = ROOT / "recipes" / "debian_ende" / "results"


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["study.sh", "debian_ende", *words])
    return study.main()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes", "many"), "error: --sizes many: give a whole number above 0, or: all"),
        (("--sizes", "20001"), "error: --sizes 20001: the corpus has 20,000 training pairs"),
        (("--sizes", "10", "--rows", "bert"), "error: --rows bert: debian_ende has no such row"),
        (("--sizes", "10", "--cores", "0"), "error: --cores 0: give a number above 0"),
        (("--budget", "cpu", "patience=9", "--add-results"), "error: --add-results is for runs of preset budgets only"),
    ],
)
def test_what_cannot_be_run_is_one_clear_error(
    workplace: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    assert run(monkeypatch, *words) == 2
    assert capsys.readouterr().err.startswith(said)
    assert workplace.calls() == []


def test_a_folder_belongs_to_its_numbers(
    workplace: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("--report-only", "--sizes", "10", "--out", "out", "--budget", "cpu")
    assert run(monkeypatch, *words) == 0
    assert run(monkeypatch, *words, "patience=9") == 2
    assert "out was begun with other numbers (patience = 3 then, 9 now)" in capsys.readouterr().err


@pytest.mark.parametrize("status", [0, 1])
def test_jobs_that_failed_fail_the_study_though_a_report_is_made(
    workplace: Any, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(study, "snakemake", lambda *_: status)
    assert run(monkeypatch, "--sizes", "10", "--out", "out") == status


@pytest.mark.parametrize("budget", ["cpu", "cpu-long"])
def test_runs_committed_by_the_first_study_are_still_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, budget: str
) -> None:
    monkeypatch.chdir(ROOT)
    plan = command.make_plan(command.parse_args(["debian_ende", "--budget", budget, "--out", str(tmp_path)]))
    plan.results.check({**plan.budget.numbers(), **recipe.numbers(plan.task, plan.budget)})
    own = [path.parent for row in plan.rows for path in (COMMITTED / budget).glob(f"bitext-*/{row}/*/scores.json")]
    assert own
    assert {path.resolve() for path in report.run_folders(plan)} == set(own)


def test_a_run_folder_of_an_earlier_study_is_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_folder = tmp_path / "bitext-10000" / "seed-1" / "dropout0.2-rep0.0" / "baseline"
    shutil.copytree(COMMITTED / "cpu" / "bitext-10000" / "baseline" / "seed-1", run_folder)
    budget = Budget("custom", sizes=(10000,), seeds=(1,), updates=CPU.updates)
    plan = Plan(tmp_path, TASKS["debian_ende"], budget, ("baseline", "src_ft"), Results(None))
    assert report.run_folders(plan) == [run_folder]


def test_a_row_that_is_being_searched_is_not_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    plan = Plan(tmp_path, TASKS["debian_ende"], PROTOCOL, ("baseline",), Results(None))
    assert report.own_run(plan, Cell("baseline", 10000, 1)) is None


def test_what_is_committed_names_no_path_and_its_choices_are_taken(
    workplace: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(results, "ROOT", workplace.folder)
    out, folder = workplace.folder / "out", Results(workplace.folder / "kept")
    made = shutil.copytree(COMMITTED / "cpu" / "bitext-10000" / "baseline" / "seed-1", out / "baseline")
    (made / "run.json").write_text(json.dumps({"command": f"{workplace.folder}/lmfusion {out}/data"}), encoding="utf-8")
    cell = Cell("baseline", 10000, 1)
    assert folder.add(cell, results.RunFolder(made), out)
    assert not folder.add(cell, results.RunFolder(made), out), "it is here already"
    kept = folder.path(cell)
    assert kept is not None
    assert str(workplace.folder) not in (kept / "run.json").read_text(encoding="utf-8")

    setting = {"dropout": 0.3, "representation": 0.0, "updates": 8000, "learning_rate": 0.0015, "bpe": 0}
    choice = {"row": "baseline", "size": 10000, **setting}
    folder.describe({}, [{**choice, "bits_per_character": {"dropout0.3-rep0.0-updates8000-lr0.0015": 1.5}}], {})
    plan = Plan(out, TASKS["debian_ende"], PROTOCOL, ("baseline",), folder)
    assert folder.chosen()["baseline", 10000].bits == 1.5
    assert plan.setting(cell).updates == 8000
    assert plan.before_training("baseline", 10000, 1) == plan.data(10000), "the search is not run again"
    assert plan.mark("score", cell) not in plan.targets()


def test_the_second_pair_takes_the_choices_of_the_first_unless_it_has_its_own(workplace: Any) -> None:
    settings = {row: Setting(dropout, 0.0, 8000, 0.003) for row, dropout in (("baseline", 0.3), ("shared", 0.4))}
    first = Results(workplace.folder / "first")
    own = Results(workplace.folder / "second", settings=first.folder)
    choices = [{"row": row, "size": 10000, **dataclasses.asdict(setting)} for row, setting in settings.items()]
    first.describe({}, choices, {})
    own.describe({}, [{**choices[1], "dropout": 0.1}], {})
    plan = Plan(workplace.folder / "out", TASKS["debian_enfr"], PROTOCOL, ("baseline", "shared"), own)
    assert plan.setting(Cell("baseline", 10000, 3)) == settings["baseline"]
    assert plan.setting(Cell("shared", 10000, 3)) == dataclasses.replace(settings["shared"], dropout=0.1)
    assert plan.before_training("baseline", 10000, 3) == plan.data(10000), "nothing is searched"
    own.describe({}, [], {})
    assert [choice["row"] for choice in own.choices()] == ["shared"], "the first pair's are not copied"


def test_the_second_pair_is_not_searched_wherever_its_corpus_lies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CORPUS", str(tmp_path))
    plan = command.make_plan(command.parse_args(["debian_enfr", "--budget", "protocol", "--out", str(tmp_path)]))
    committed = json.loads((COMMITTED / "protocol" / "choices.json").read_text(encoding="utf-8"))
    for choice in committed:
        if choice["row"] in plan.rows:
            setting = plan.setting(Cell(choice["row"], 10000, 1))
            assert (setting.dropout, setting.updates) == (choice["dropout"], choice["updates"])
    assert plan.results.folder is None, "a corpus of one's own adds nothing to the committed results"


@pytest.mark.parametrize(("row", "closest"), [("src_elmo_skipgram", "src_elmo"), ("prefix_lm", "baseline")])
def test_other_families_and_integrations_are_named_and_take_committed_settings(
    tmp_path: Path, row: str, closest: str
) -> None:
    words = ["debian_ende", "--budget", "protocol", "--out", str(tmp_path)]
    assert row not in command.make_plan(command.parse_args(words)).rows
    plan = command.make_plan(command.parse_args([*words, "--rows", row]))
    assert plan.cells() == [Cell(row, 10000, 1)]
    assert plan.before_choice(row, 10000) == [], "nothing is searched"
    assert plan.choose(row, 10000) == plan.results.chosen()[closest, 10000]


def test_committed_configurations_are_not_trained_again(workplace: Any) -> None:
    folder = Results(workplace.folder / "kept")
    first = {number: Tried(configuration("shared", 10000, number, []), 3.0 - number / 10) for number in (1, 2, 3)}
    tries = {("shared", 10000, number): tried for number, tried in first.items()}
    folder.describe({}, [], tries)
    folder.describe({}, [], {("shared", 10000, 1): Tried(first[1].setting, 1.0)})
    assert folder.tries() == tries, "what is committed stays as it was"
    plan = Plan(workplace.folder / "out", TASKS["debian_ende"], PROTOCOL, ("shared",), folder)
    assert plan.before_try("shared", 10000, 4) == []
    assert plan.tried("shared", 10000, 4) == Setting(0.4, 0.0, 8000, 0.003), "a step from the third, the best"
    fourth = Path(plan.mark("try", Cell("shared", 10000, 1), 4))
    assert plan.before_try("shared", 10000, 5) == [str(fourth)]
    diverged = Tried(plan.tried("shared", 10000, 4), math.inf)
    fourth.parent.mkdir(parents=True)
    fourth.write_text(diverged.to_json(), encoding="utf-8")
    assert plan.tried("shared", 10000, 5) == Setting(0.3, 0.0, 8000, 0.003, bpe=2000)
    assert plan.tries() == {**tries, ("shared", 10000, 4): diverged}
