"""``lmfusion inspect`` of what is no checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def test_inspecting_no_file_is_one_line(failing: Callable[..., str], tmp_path: Path) -> None:
    assert "nowhere.pt does not exist" in failing("inspect", tmp_path / "nowhere.pt")


def test_inspecting_a_folder_without_a_checkpoint_says_what_belongs_there(
    failing: Callable[..., str], tmp_path: Path
) -> None:
    line = failing("inspect", tmp_path)
    assert "--user-dir" not in line
    assert all(name in line for name in (str(tmp_path), "checkpoint_best.pt", "checkpoint_last.pt", "config.json"))
    for flags in (["--card"], ["--json"], ["--rank", "--text", tmp_path / "text"]):
        assert failing("inspect", tmp_path, *flags) == line


def test_inspecting_a_folder_of_runs_names_them(failing: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "checkpoint_last.pt").touch()
    assert str(tmp_path / "mine") in failing("inspect", tmp_path)
