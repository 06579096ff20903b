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


def test_unknown_name_and_failure_are_said_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["bench", "nothing"]) == 2
    assert "there is no such benchmark; there are all, chunked_loss, decoding_cache" in capfd.readouterr().err
    ends = 'sys.exit(f"no size: {sys.argv[1:]}" if sys.argv[1:] else 3)'
    program = f'import sys\n\nif __name__ == "__main__":\n    {ends}\n'
    (tmp_path / "strict.py").write_text(f'"""Refuses everything."""\n{program}', encoding="utf-8")
    monkeypatch.setattr(bench, "FOLDER", tmp_path)
    for options, status in ((["--size", "nothing"], 1), ([], 3)):
        assert cli.main(["bench", "strict", *options]) == 2
        said = capfd.readouterr().err
        assert f"the benchmark strict ended with status {status}" in said
        assert ("no size: ['--size', 'nothing']" in said) is bool(options)


def test_without_the_repository_it_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "FOLDER", tmp_path / "benchmarks")
    assert cli.main(["bench"]) == 2
    assert "clone of the repository" in capsys.readouterr().err
