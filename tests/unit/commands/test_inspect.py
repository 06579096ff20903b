"""``lmfusion inspect`` of what is no checkpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion import cli


def failing(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    """The one line that a command prints when it refuses."""
    assert cli.main([str(argument) for argument in arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith("lmfusion: error: ")
    assert printed.err.count("\n") == 1
    return printed.err


def test_inspecting_no_file_is_one_line(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert "nowhere.pt does not exist" in failing(capsys, "inspect", tmp_path / "nowhere.pt")


def test_inspecting_a_folder_without_a_checkpoint_says_what_belongs_there(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = failing(capsys, "inspect", tmp_path)
    assert "--user-dir" not in line
    assert all(name in line for name in (str(tmp_path), "checkpoint_best.pt", "checkpoint_last.pt", "config.json"))
    for flags in (["--card"], ["--json"], ["--rank", "--text", tmp_path / "text"]):
        assert failing(capsys, "inspect", tmp_path, *flags) == line


def test_inspecting_a_folder_of_runs_names_them(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "checkpoint_last.pt").touch()
    assert str(tmp_path / "mine") in failing(capsys, "inspect", tmp_path)
