"""study.sh as a whole, with row scripts that only pretend to train."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from study import recipe
from study.budget import GPU
from study.task import TASKS

Study = Callable[..., int]
SMALL = ("--sizes", "10", "20", "--rows", "baseline", "src_elmo", "--seeds", "1", "2", "--jobs", "1", "--out", "out")
GRID = ("--budget", "cpu", "dropouts=0.1,0.3", "representation_dropouts=0.0,0.2")


def test_runs_are_made_once_and_scored_once(study: Study, workplace: Any) -> None:
    assert study(*SMALL) == 0
    calls = workplace.calls()
    assert calls[:2] == ["10 baseline 1 0.2 0.0 scored", "20 baseline 1 0.2 0.0 scored"]
    assert len(calls) == len(set(calls)) == 8
    assert study(*SMALL) == 0
    assert workplace.calls() == calls


def test_the_test_set_is_scored_with_the_chosen_dropouts_only(study: Study, workplace: Any) -> None:
    workplace.set_losses({"src_elmo 0.3 0.0": 5.0, "src_elmo 0.3 0.2": 4.0, "baseline 0.1 0.0": 6.0})
    assert study(*GRID, "--sizes", "10", *SMALL[3:]) == 0
    calls = workplace.calls()
    assert [call for call in calls if call.endswith("scored")] == [
        *("10 baseline 1 0.1 0.0 scored", "10 src_elmo 1 0.3 0.2 scored"),
        *("10 baseline 2 0.1 0.0 scored", "10 src_elmo 2 0.3 0.2 scored"),
    ]
    tried = [call.rsplit(" ", 1)[0] for call in calls if call.endswith(" 1")]
    assert tried == [
        *("10 baseline 1 0.1 0.0", "10 baseline 1 0.3 0.0"),
        *("10 src_elmo 1 0.1 0.0", "10 src_elmo 1 0.3 0.0", "10 src_elmo 1 0.3 0.2"),
    ]
    choices = json.loads((workplace.folder / "out" / "choices.json").read_text(encoding="utf-8"))
    assert [(each["row"], each["dropout"], each["representation"]) for each in choices] == [
        *(("baseline", 0.1, 0.0), ("src_elmo", 0.3, 0.2)),
    ]


def test_a_failed_run_is_named_others_go_on_and_the_same_command_mends_it(
    study: Study, workplace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAIL", "baseline")
    assert study(*SMALL) == 1
    shown = capsys.readouterr()
    assert "failed: 10 pairs baseline seed 1: exit status 3. Its last words:" in shown.err
    assert "ValueError: no luck" in shown.out
    assert "error: 4 jobs failed" in shown.err
    assert sum("src_elmo" in call for call in workplace.calls()) == 4
    monkeypatch.delenv("FAIL")
    assert study(*SMALL) == 0
    assert sum("src_elmo" in call for call in workplace.calls()) == 4, "finished ones are not run again"


def test_committed_results_are_small_name_no_path_and_are_not_run_again(study: Study, workplace: Any) -> None:
    assert study(*SMALL, "--add-results") == 0
    results = workplace.folder / "recipes" / "debian_ende" / "results" / "cpu"
    run = results / "bitext-10" / "baseline" / "seed-2"
    assert {path.name for path in run.iterdir()} == {"run.json", "scores.json", "test.hyp", "train.log"}
    assert len(list(results.glob("bitext-*/*/seed-*"))) == 8
    log = (run / "train.log").read_text(encoding="utf-8")
    assert log.count("\n") == 2
    assert '"num_updates": "50"' in log
    texts = [path.read_text(encoding="utf-8") for path in results.rglob("*") if path.is_file()]
    assert not [text for text in texts if str(workplace.folder) in text]
    assert json.loads((run / "run.json").read_text(encoding="utf-8"))["steps"]["train"]["command"][-1] == "lmfusion"

    calls = workplace.calls()
    assert study(*SMALL[:-1], "elsewhere") == 0
    assert workplace.calls() == calls
    assert study("--seeds", "3", "--sizes", "10", "--rows", "baseline", "--out", "elsewhere", "--add-results") == 0
    assert len(workplace.calls()) == len(calls) + 1
    assert len(list(results.glob("bitext-*/*/seed-*"))) == 9


def test_results_of_other_numbers_are_neither_taken_nor_added(
    study: Study, workplace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study(*SMALL, "--add-results") == 0
    calls = len(workplace.calls())
    assert study("--budget", "cpu", "patience=9", *SMALL[:-1], "other", "--add-results") == 2
    assert "error: --add-results is for runs of preset budgets only; not preset: --budget" in capsys.readouterr().err
    monkeypatch.setenv("BEAM", "1")
    assert study(*SMALL[:-1], "beam") == 0
    assert len(workplace.calls()) == 2 * calls, "the environment has other numbers, so all are run"


def test_a_folder_belongs_to_its_numbers(study: Study, capsys: pytest.CaptureFixture[str]) -> None:
    assert study(*SMALL) == 0
    assert study("--budget", "cpu", "patience=9", *SMALL) == 2
    assert "out was begun with other numbers (patience = 3 then, 9 now)" in capsys.readouterr().err


def test_a_dry_run_shows_the_plan_and_runs_nothing(
    study: Study, workplace: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    assert study(*GRID, *SMALL, "--dry-run") == 0
    shown = capsys.readouterr().out
    assert "10 pairs src_elmo seed 1, representation dropout 0.2" in shown
    assert shown.count("updates") == shown.count("\n") - 1 == 18
    assert workplace.calls() == []
    assert not (workplace.folder / "out").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--sizes", "many"), "error: --sizes many: give a whole number above 0, or: all"),
        (("--sizes", "51"), "error: --sizes 51: the corpus has 50 training pairs"),
        (("--sizes", "10", "--rows", "bert"), "error: --rows bert: debian_ende has no such row"),
        (("--sizes", "10", "--jobs", "0"), "error: --jobs 0: give a number above 0"),
    ],
)
def test_what_cannot_be_run_is_one_clear_error(
    study: Study, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert study(*words) == 2
    assert capsys.readouterr().err.startswith(said)


def test_committed_results_belong_to_the_scripts_numbers_and_to_the_shipped_language_models(
    study: Study, workplace: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert study(*SMALL, "--add-results") == 0
    kept = workplace.folder / "recipes" / "debian_ende" / "results" / "cpu" / "numbers.json"
    numbers = json.loads(kept.read_text(encoding="utf-8"))
    assert (numbers["S2S_DIM"], numbers["BEAM"]) == ("192", "5")
    assert len(numbers["en-cloze.pt"]) == 16, "the beginning of a SHA-256"
    assert "S2S_UPDATES" not in numbers, "the budget says it"
    assert "LM_UPDATES" not in numbers, "no language model is trained"

    kept.write_text(json.dumps({**numbers, "S2S_DIM": "512", "en-cloze.pt": "another"}), encoding="utf-8")
    assert study(*SMALL) == 2
    said = capsys.readouterr().err
    assert "S2S_DIM = 512 then, 192 now" in said
    assert "en-cloze.pt = another then," in said


def test_every_row_is_told_its_sizes_learning_rate(study: Study, workplace: Any) -> None:
    for name in ("baseline", "src_elmo"):
        script = workplace.folder / "recipes" / "debian_ende" / f"{name}.sh"
        script.write_text(script.read_text(encoding="utf-8").replace("$S2S_DROPOUT", "$S2S_LR", 1), encoding="utf-8")
    assert study("--budget", "cpu", "learning_rates=10:0.0045,all:0.002", *SMALL) == 0
    told = {(call.split()[0], call.split()[3]) for call in workplace.calls()}
    assert told == {("10", "0.0045"), ("20", "0.002")}


def test_pretrained_language_models_belong_to_the_numbers_of_the_script_that_trains_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = recipe.numbers(TASKS["debian_ende"], GPU)
    assert (numbers["cloze LM_LAYERS"], numbers["causal LM_LAYERS"]) == ("4", "3")
    assert (numbers["cloze LM_WARMUP"], numbers["causal LM_DROPOUT"]) == ("500", "0.2")
    assert not {"LM_UPDATES", "cloze LM_UPDATES", "LM_LAYERS", "en-cloze.pt"} & set(numbers), "the budget says updates"

    monkeypatch.setenv("LM_PATIENCE", "1")
    monkeypatch.setenv("MORE_TEXT", "more")
    changed = recipe.numbers(TASKS["debian_ende"], GPU)
    assert (changed["cloze LM_PATIENCE"], changed["MORE_TEXT"]) == ("1", "more")
    assert recipe.overridden(TASKS["debian_ende"]) == ["LM_PATIENCE", "MORE_TEXT"]
