"""recipes/perplexity_table.py: a model's lowest perplexity beside the size of its text."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import perplexity_table
import pytest


def trained(folder: Path, loss: float | None, state: str = "finished") -> Path:
    """A run folder and its data, as recipes/perplexity_by_text.sh leaves them."""
    data = folder.parent / f"data.{folder.name}"
    data.mkdir()
    counts = {"lm.de": {"files": {"train": {"sentences": 42162, "tokens": 1050000}}}}
    (data / "prepare.json").write_text(json.dumps({"counts": counts}))
    folder.mkdir()
    step = {"state": state, "command": [], "seconds": 1.0, "result": {"best_valid_loss": loss}}
    (folder / "run.json").write_text(json.dumps({"steps": {"train": step}}))
    return folder


def test_perplexity_is_two_to_the_lowest_loss(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [trained(tmp_path / "causal.half", 6.0), trained(tmp_path / "causal.all", 5.5)]
    monkeypatch.setattr(sys, "argv", ["perplexity_table.py", "de", *map(str, folders)])
    assert perplexity_table.main() == 0
    assert capsys.readouterr().out.splitlines() == [
        "model\tsentences\tsymbols\tperplexity",
        "causal.half\t42162\t1050000\t64.00",
        "causal.all\t42162\t1050000\t45.25",
    ]


def test_an_unfinished_model_or_one_without_its_data_is_one_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = trained(tmp_path / "causal.all", None, state="running")
    monkeypatch.setattr(sys, "argv", ["perplexity_table.py", "de", str(folder)])
    assert perplexity_table.main() == 2
    assert "its training has not finished (running)" in capsys.readouterr().err
    (tmp_path / "data.causal.all" / "prepare.json").unlink()
    assert perplexity_table.main() == 2
    assert "prepare.json: no such file" in capsys.readouterr().err
