"""Scripts beside each other."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from lmfusion.rows.jobs import Places, Started, run_all

WAITING = """touch "$FOLDER/$0"; echo "$0 begins"
until [ "$(ls "$FOLDER" | wc -l)" -ge 2 ]; do sleep 0.02; done; echo "$0 ends"
"""


def test_as_many_scripts_run_at_once_as_there_are_places(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Each waits until the second was started: one after the other they would wait forever."""
    environment = {**os.environ, "FOLDER": str(tmp_path)}
    found = run_all(["a", "b"], Places(2, 2, 0), lambda name: ["bash", "-c", WAITING, name], environment)
    assert found == {"a": 0, "b": 0}
    assert sorted(capfd.readouterr().out.splitlines()) == ["a begins", "a ends", "b begins", "b ends"]


def test_each_script_has_its_status_and_a_failed_one_stops_no_other(tmp_path: Path) -> None:
    log = tmp_path / "log"
    found = run_all(["3", "0", "7"], Places(1, 1, 0), lambda n: ["bash", "-c", f"echo {n}; exit {n}"], os.environ, log)
    assert found == {"3": 3, "0": 0, "7": 7}
    assert log.read_text(encoding="utf-8").split() == ["3", "0", "7"]


@pytest.mark.parametrize(("count", "shown"), [(2, ["0", "1"]), (4, ["0", "0", "1", "1"])])
def test_each_place_has_a_gpu_which_more_places_share(tmp_path: Path, count: int, shown: list[str]) -> None:
    log = tmp_path / "log"
    show = ["bash", "-c", 'echo "$CUDA_VISIBLE_DEVICES"; sleep 0.3']
    run_all("abcd"[:count], Places(count, 4, 2), lambda _: show, os.environ, log)
    assert sorted(log.read_text(encoding="utf-8").split()) == shown


@pytest.mark.parametrize(
    ("count", "cores", "scripts", "threads"), [(2, 8, 2, 4), (2, 8, 1, 8), (4, 2, 4, 1), (1, 1, 3, 1)]
)
def test_scripts_share_the_cores(count: int, cores: int, scripts: int, threads: int) -> None:
    assert Places(count, cores, 0).threads(scripts) == threads


def test_an_interruption_of_this_process_alone_ends_the_scripts(tmp_path: Path) -> None:
    end = f"pathlib.Path({str(tmp_path / 'end')!r}).touch()"
    script = f"import pathlib, time; print('at work', flush=True); time.sleep(60); {end}"
    program = (
        "import os, signal, sys\nfrom lmfusion.rows import jobs\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\njobs.GRACE = 0.1\n"
        f"command = [sys.executable, '-c', {script!r}]\n"
        "jobs.run_all('ab', jobs.Places(1, 1, 0), lambda _: command, os.environ)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(signal.SIGINT)
        rest, errors = process.communicate()
    assert (process.returncode, rest) == (-signal.SIGINT, ""), errors
    assert "KeyboardInterrupt" in errors
    assert not (tmp_path / "end").exists()


def test_a_script_that_starts_while_the_others_are_ended_is_ended_too() -> None:
    started = Started()
    started.end()
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        started.add(process)
    assert process.returncode == -signal.SIGTERM
