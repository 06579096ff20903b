"""``lmfusion bench``: lists and runs what lies in benchmarks/."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion import cli
from lmfusion.commands import bench


def test_benchmarks_are_listed_with_what_they_measure(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench"]) == 0
    listed = capsys.readouterr().out
    for name in ("all", "training", "generation", "pretraining", "growth", "limits", "decoding_cache", "rouge_speed"):
        assert f"{name} " in listed
    assert "tensorboardX" not in listed
    assert "models" not in listed.split(), "what benchmarks share is none"


def test_options_reach_the_benchmark(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "found.json"
    options = ["--summaries", "20", "--threads", "1", "--json", str(out)]
    assert cli.main(["bench", "rouge_speed", *options]) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["command"] == ["rouge_speed", *options[:-2]]
    assert "ROUGE of summaries" in capfd.readouterr().out


def test_unknown_name_and_failure_are_said_plainly(capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bench", "nothing"]) == 2
    assert "there is no such benchmark; there are all, chunked_loss, decoding_cache" in capfd.readouterr().err
    assert cli.main(["bench", "training", "--size", "nothing"]) == 2
    assert "the benchmark training ended with status 2" in capfd.readouterr().err


def test_without_the_repository_it_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "FOLDER", tmp_path / "benchmarks")
    assert cli.main(["bench"]) == 2
    assert "clone of the repository" in capsys.readouterr().err
