"""The choice of a sweep, and our scores beside the published ones."""

from __future__ import annotations

import importlib.util
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest

RECIPES = Path(__file__).parents[4] / "recipes"
NEWSTESTS = [f"newstest{year}" for year in range(2012, 2019)]
SRC_FT_640K = [20.5, 24.0, 22.9, 26.1, 29.1, 24.4, 34.9]  # Table 4


@dataclass
class Done:
    """What a program returned and printed."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a program of recipes/ in this process."""

    def start(program: str, *words: object) -> Done:
        spec = importlib.util.spec_from_file_location(program.removesuffix(".py"), RECIPES / program)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        monkeypatch.setattr("sys.argv", [program, *map(str, words)])
        status = module.main()
        said = capsys.readouterr()
        return Done(status, said.out, said.err)

    return start


def recorded(folder: Path, state: str = "finished", loss: float | None = None, **scores: object) -> Path:
    """A run folder whose training ended so."""
    folder.mkdir()
    step = {"state": state, "command": [], "seconds": 1.0, "result": {"best_valid_loss": loss}}
    (folder / "run.json").write_text(json.dumps({"steps": {"train": step}}), encoding="utf-8")
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
    return folder


def test_the_lowest_validation_loss_is_named_alone_on_stdout(tmp_path: Path, run: Run) -> None:
    folders = [recorded(tmp_path / f"b.dropout-{loss}", loss=loss) for loss in (3.25, 3.125, 4.0)]
    done = run("lowest_loss.py", *folders)
    assert done.returncode == 0
    assert done.stdout == f"{folders[1]}\n"
    assert "/b.dropout-3.125: validation loss 3.125  <- lowest\n" in done.stderr
    assert done.stderr.count("validation loss") == 3


@pytest.mark.parametrize(
    ("state", "loss", "said"),
    [
        ("failed", 3.0, "its training has not finished (failed). Finish it first."),
        ("finished", None, "no validation gave a loss that is a number"),
        ("finished", float("nan"), "no validation gave a loss that is a number"),
    ],
)
def test_a_setting_without_a_loss_is_not_passed_over(
    state: str, loss: float | None, said: str, tmp_path: Path, run: Run
) -> None:
    folders = [recorded(tmp_path / "good", loss=1.0), recorded(tmp_path / "other", state, loss)]
    done = run("lowest_loss.py", *folders)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: {folders[1]}: {said}")


def test_bleu_of_every_newstest_and_their_average_stand_above_the_papers(tmp_path: Path, run: Run) -> None:
    ours = {name: {"bleu": 10.0 + number} for number, name in enumerate(NEWSTESTS)}
    folder = recorded(tmp_path / "src_ft", **ours)
    done = run("beside_published.py", folder, "--pair", "en-de", "--pairs", "640000")
    assert done.returncode == 0, done.stderr
    head, first, second, source = done.stdout.splitlines()
    assert head.split() == [*NEWSTESTS, "average"]
    assert first.split() == ["src_ft", "ours", *(f"{10 + number:.2f}" for number in range(7)), "13.00"]
    average = sum(SRC_FT_640K) / 7
    assert second.split() == ["src_ft", "paper", *(f"{value:.2f}" for value in SRC_FT_640K), f"{average:.2f}"]
    assert "Edunov" in source


def test_a_variant_is_compared_with_its_row_and_what_is_not_published_is_a_dash(tmp_path: Path, run: Run) -> None:
    entry = {"newstest2017": {"bleu": 1.0}, "newstest2018": {"bleu": 2.0}}
    folder = recorded(tmp_path / "src_elmo.dropout-0.2", **entry)
    words = ("--pair", "en-tr", "--pairs", "208000")
    lines = run("beside_published.py", folder, "--row", "src_elmo", *words).stdout.splitlines()
    assert lines[2].split() == ["src_elmo.dropout-0.2", "paper", "12.00", "11.30", "11.65"]
    lines = run("beside_published.py", folder, "--row", "src_ft", *words).stdout.splitlines()
    assert lines[2].split() == ["src_elmo.dropout-0.2", "paper", "-", "-", "-"]


def test_rouge_is_compared_and_a_run_without_scores_is_named(tmp_path: Path, run: Run) -> None:
    score = {key: {"f1": {"mean": value}} for key, value in (("rouge1", 0.4), ("rouge2", 0.2), ("rougeL", 0.3))}
    folders = [recorded(tmp_path / "lead3", cnn_dm=score), recorded(tmp_path / "baseline")]
    done = run("beside_published.py", *folders, "--data-set", "cnn_dm")
    assert done.stdout.splitlines()[0] == "  baseline: no scores yet"
    assert [line.split() for line in done.stdout.splitlines()[1:4]] == [
        ["ROUGE-1", "ROUGE-2", "ROUGE-L"],
        ["lead3", "ours", "40.00", "20.00", "30.00"],
        ["lead3", "paper", "40.34", "17.70", "36.57"],
    ]
