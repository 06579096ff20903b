"""live.py with commands that fail: what is shown of them, and the status that is handed on."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from lmfusion.runs import live, live_line, watchers
from lmfusion.runs.run_folder import RunFolder


def run_live(run: Path, code: str) -> tuple[int, str]:
    """Run a training step that is a line of bash; return its status and what is shown."""
    args = live.parse_args([str(run), "train", "--label", "toy", "--updates", "9", "--", "bash", "-c", code])
    shown = io.StringIO()
    watcher = watchers.TrainingWatcher("toy", 9)
    return live.run_step(RunFolder(run), args, watcher, live_line.LiveLine(shown)), shown.getvalue()


def test_an_attempt_that_says_nothing_is_not_explained_by_the_one_before(tmp_path: Path) -> None:
    code = f'mkdir {tmp_path}/before 2>/dev/null && echo "toy: error: the first reason"; exit 3'
    status, shown = run_live(tmp_path / "run", code)
    assert (status, "the first reason" in shown) == (3, True)
    status, shown = run_live(tmp_path / "run", code)
    assert (status, "the first reason" in shown, "(nothing)" in shown) == (3, False, True)
    assert (tmp_path / "run/train.log").read_text(encoding="utf-8") == "toy: error: the first reason\n"


@pytest.mark.parametrize(("signal", "status"), [("TERM", 143), ("KILL", 137)])
def test_a_command_that_a_signal_ends_has_the_status_that_a_shell_gives_it(
    tmp_path: Path, signal: str, status: int
) -> None:
    assert run_live(tmp_path, f"kill -{signal} $$")[0] == status
