"""recipes/_stages.sh and _common.sh with stages that only sleep or fail."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

RECIPES = Path(__file__).parents[3] / "recipes"
SCRIPT = """
set -euo pipefail
. {recipes}/_common.sh
. {recipes}/_stages.sh
STAGE_NAMES=(First Second) STAGE_SECONDS=(30 240)
stages_begin "minutes=${{MINUTES:-1}}"
stage 0 echo one
stage 1 eval "${{SECOND:-echo two}}"
echo spent "$(stage_seconds 1)"
"""


def start(out: Path, **settings: str) -> subprocess.Popen[str]:
    command = ["bash", "-c", SCRIPT.format(recipes=RECIPES)]
    environment = {**os.environ, "OUT": str(out), **settings}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=listen_to_interrupts,
    )


def listen_to_interrupts() -> None:
    """What a shell starts in the background ignores Ctrl-C, and hands that down; a person's shell does not."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def run(out: Path, **settings: str) -> tuple[int, str, str]:
    process = start(out, **settings)
    shown, errors = process.communicate(timeout=60)
    return process.returncode, shown, errors


def test_stages_are_announced_with_the_time_left_and_not_done_twice(tmp_path: Path) -> None:
    status, shown, _ = run(tmp_path)
    assert status == 0
    assert "[0/1] First (about 5 min left in all)\none\n[1/1] Second (about 4 min left in all)\ntwo\n" in shown
    status, shown, _ = run(tmp_path)
    assert status == 0
    assert "[0/1] First: done before\n[1/1] Second: done before\n" in shown
    assert "two" not in shown


def test_a_failed_stage_ends_the_recipe_and_is_done_again(tmp_path: Path) -> None:
    status, shown, errors = run(tmp_path, SECOND="sleep 1.2; exit 7")
    assert status == 7
    assert "stage 1 (Second)" in errors
    status, shown, _ = run(tmp_path)
    assert status == 0
    assert "[0/1] First: done before\n[1/1] Second" in shown
    assert int(shown.rsplit(" ", 1)[1]) >= 1, "the time of the failed attempt counts"


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_recipe_goes_on(tmp_path: Path, sent: signal.Signals) -> None:
    # By the shell itself: if a program that it waits for ends well after Ctrl-C, bash goes on.
    process = start(tmp_path, SECOND=": >$OUT/there; sleep 30")
    deadline = time.monotonic() + 60
    while not (tmp_path / "there").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.killpg(process.pid, sent)
    _, errors = process.communicate(timeout=20)
    assert process.returncode != 0
    assert ("Stopped in stage 1" in errors) == (sent != signal.SIGKILL)
    status, shown, _ = run(tmp_path)
    assert status == 0
    assert "[0/1] First: done before\n[1/1] Second" in shown


def test_other_settings_are_refused_and_named(tmp_path: Path) -> None:
    assert run(tmp_path)[0] == 0
    status, _, errors = run(tmp_path, MINUTES="2")
    assert status == 2
    assert "was begun with other settings (< minutes=1 > minutes=2" in errors
    assert run(tmp_path)[0] == 0


def test_the_output_folder_must_be_named() -> None:
    command = ["bash", "-c", f". {RECIPES}/_common.sh; begin"]
    environment = {name: value for name, value in os.environ.items() if name != "OUT"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "OUT is not set" in done.stderr
