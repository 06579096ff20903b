"""recipes/debian_ende/study.sh, really trained at a tiny scale: killed, run again, run a third time."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from subprocess import Popen
from typing import Callable

import pytest

pytest.importorskip("snakemake", reason="the extra `study` is not installed")
STUDY = ["debian_ende/study.sh", "--sizes", "400", "--seeds", "1", "--cores", "1"]
STUDY += ["--rows", "baseline", "--budget", "cpu", "updates=400:12", "validate_every=6"]


@pytest.mark.slow
def test_it_is_killed_resumes_reports_and_does_nothing_twice(start: Callable[..., Popen[str]], tmp_path: Path) -> None:
    out = tmp_path / "study"
    run = out / "bitext-400" / "seed-1" / "dropout0.2-rep0.0" / "baseline"

    killed = start(*STUDY, "--out", str(out))
    while not (run / "run.json").exists():
        assert killed.poll() is None, killed.communicate()[0]
        time.sleep(0.1)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()

    finished = start(*STUDY, "--out", str(out))
    while "another study is at work there" in (shown := finished.communicate()[0]):  # the job that was running
        time.sleep(0.5)
        finished = start(*STUDY, "--out", str(out))
    assert finished.returncode == 0, shown
    scores = (run / "scores.json").read_text(encoding="utf-8")
    assert "test" in json.loads(scores)
    assert "baseline" in (out / "report" / "report.html").read_text(encoding="utf-8")

    again = start(*STUDY, "--out", str(out))
    shown = again.communicate()[0]
    assert again.returncode == 0
    assert "Nothing to be done" in shown
    assert (run / "scores.json").read_text(encoding="utf-8") == scores
