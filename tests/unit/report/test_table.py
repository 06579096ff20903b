"""table.py: run folders in every state as rows of one table."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from lmfusion.report import table
from lmfusion.runs.run_folder import RunFolder

BLEU = {"bleu": 12.345, "chrf": 34.567, "signature": "BLEU|tok:13a"}
ROUGE: dict[str, Any] = {
    "rouge1": {"f1": {"mean": 0.41234, "low": 0.4, "high": 0.42}, "recall": {"mean": 0.9}},
    "rouge2": {"f1": {"mean": 0.2}},
    "rougeL": {"f1": {"mean": 0.385}},
    "signature": "ROUGE|stemmer:porter",
}
TRAINED = {"updates": 2000, "tokens_per_second": 1234.5, "best_valid_perplexity": 9.87}


def make_run(folder: Path, score: dict[str, Any] | None = None, generated: bool = True, trained: bool = True) -> Path:
    """A run folder as the recipes leave it."""
    run = RunFolder(folder)
    run.path.mkdir()
    if trained:
        run.begin("train", ["fairseq-train"])
        run.add_seconds("train", 3661)
        run.finish("train", TRAINED)
    run.begin("generate", ["fairseq-generate"])
    if generated:
        run.finish("generate", {"sentences": 9, "tokens_per_second": 765.4 if trained else None})
    if score:
        run.add_score("test", score)
    return folder


def show(*folders: Path) -> list[list[str]]:
    """The table's lines as cells."""
    console = Console(width=150, record=True)
    console.print(table.table_of([RunFolder(folder) for folder in folders]))
    lines = [line for line in console.export_text().splitlines() if line.startswith(("┃", "│"))]
    return [[cell.strip() for cell in line.strip("┃│").replace("┃", "│").split("│")] for line in lines]


def test_bleu_perplexity_time_and_speed_in_one_line(tmp_path: Path) -> None:
    heading, row = show(make_run(tmp_path / "baseline", BLEU))
    assert heading[:3] == ["row", "BLEU", "chrF"]
    assert row == ["baseline", "12.35", "34.57", "9.87", "2,000", "1:01:01", "1,234", "0:00", "765"]


def test_rouge_is_f1_in_percent_and_what_needs_no_training_shows_none(tmp_path: Path) -> None:
    lead = make_run(tmp_path / "lead", ROUGE, trained=False)
    heading, *rows = show(lead, make_run(tmp_path / "src_ft", ROUGE))
    assert heading[1:4] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert rows[0] == ["lead", "41.23", "20.00", "38.50", "", "", "", "", "", ""]
    assert rows[1][:5] == ["src_ft", "41.23", "20.00", "38.50", "9.87"]


def test_runs_that_are_not_finished_say_so_and_show_no_score(tmp_path: Path) -> None:
    finished = make_run(tmp_path / "finished", BLEU)
    going_on = make_run(tmp_path / "going_on", BLEU, generated=False)
    failed = make_run(tmp_path / "failed", generated=False)
    RunFolder(failed).fail("generate", "no memory")
    unscored = make_run(tmp_path / "unscored")
    _, *rows = show(finished, going_on, failed, unscored, tmp_path / "absent")
    assert [row[-1] for row in rows] == ["", "generate started", "generate failed", "not scored", "not begun"]
    assert [row[1] for row in rows] == ["12.35", "", "", "", ""]


def test_scores_of_different_signatures_do_not_stand_in_one_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [make_run(tmp_path / "a", BLEU), make_run(tmp_path / "b", {**BLEU, "signature": "BLEU|tok:none"})]
    monkeypatch.setattr(sys, "argv", ["table", *map(str, folders)])
    assert table.main() == 2
    error = capsys.readouterr().err
    assert "a: BLEU|tok:13a; b: BLEU|tok:none" in error
    assert "Score them again" in error


def test_the_table_is_saved_as_text_with_its_signature(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "table.txt"
    monkeypatch.setattr(sys, "argv", ["table", str(make_run(tmp_path / "baseline", BLEU)), "--save", str(saved)])
    assert table.main() == 0
    assert saved.read_text(encoding="utf-8") == capsys.readouterr().out
    assert "BLEU|tok:13a" in saved.read_text(encoding="utf-8")
