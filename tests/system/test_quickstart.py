"""recipes/quickstart.sh from end to end at a tiny scale: killed half-way, run again, run a third time."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUICKSTART = ["bash", "recipes/quickstart.sh", "--from-scratch"]
TINY = {
    "BITEXT_LINES": "400",
    "MAX_RATIO": "0",
    "BPE_SIZE": "500",
    "LM_DIM": "16",
    "LM_FFN": "16",
    "LM_LAYERS": "1",
    "LM_HEADS": "2",
    "LM_UPDATES": "20",
    "LM_VALIDATE_EVERY": "10",
    "S2S_DIM": "16",
    "S2S_FFN": "16",
    "S2S_LAYERS": "1",
    "S2S_HEADS": "2",
    "S2S_TOKENS": "600",
    "S2S_UPDATES": "150",
    "S2S_VALIDATE_EVERY": "10",
    "BEAM": "2",
}


@pytest.fixture
def environment(small_corpus: Path) -> dict[str, str]:
    """The tests' own Python, the slice of the corpus, and numbers so small that each stage takes seconds."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "NO_SETUP": "1", "CORPUS": str(small_corpus), "OMP_NUM_THREADS": "1"}
    return {**os.environ, **TINY, **own}


def run(environment: dict[str, str], *flags: object) -> subprocess.CompletedProcess[str]:
    command = [*QUICKSTART, *map(str, flags)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_it_is_killed_goes_on_reports_and_does_nothing_twice(environment: dict[str, str], tmp_path: Path) -> None:
    out = tmp_path / "run"
    killed = subprocess.Popen(
        [*QUICKSTART, "--out", str(out)], cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    checkpoint = out / "baseline" / "checkpoints" / "checkpoint_last.pt"
    deadline = time.monotonic() + 400
    while not checkpoint.exists():
        assert killed.poll() is None, killed.communicate()[0].decode()
        assert time.monotonic() < deadline
        time.sleep(0.1)
    os.kill(killed.pid, signal.SIGKILL)
    assert "lm.en: update 20, validation perplexity" in killed.communicate()[0].decode()
    assert json.loads((out / "baseline" / "run.json").read_text())["state"] == "started"

    done = run(environment, "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"\[3/5\] Pretraining .*: done before", done.stdout)
    log = (out / "baseline" / "train.log").read_text()
    assert "Loaded checkpoint" in log
    assert json.loads((out / "baseline" / "run.json").read_text())["steps"]["train"]["attempts"] == 2
    assert_reported(out, done.stdout)

    again = run(environment, "--out", out)
    assert again.returncode == 0, again.stderr
    assert again.stdout.count("done before") == 6
    assert (out / "baseline" / "train.log").read_text() == log


def assert_reported(out: Path, shown: str) -> None:
    """Everything the quickstart promises to show is there, on the terminal and in files."""
    for name in ("baseline", "src_elmo"):
        score = json.loads((out / name / "scores.json").read_text())["test"]
        assert "tok:13a" in score["signature"]
        assert len((out / name / "test.hyp").read_text().splitlines()) == 25
    report = (out / "report.txt").read_text(encoding="utf-8")
    assert report in shown
    for expected in (
        "10 translations",
        "Learned mix of the source LM's layers",
        "BLEU|nrefs:1",
        "paired bootstrap",
        "cloze LM of stage 3: training",
        "baseline: translating the test set",
    ):
        assert expected in report
    assert str(out / "report" / "report.html") in shown
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    for expected in ("curve-loss", "lm-curve-loss", "mix-source"):
        assert f'id="figure-{expected}"' in page
    for expected in ("scores", "significance", "runs"):
        assert f'id="table-{expected}"' in page
    assert "not the raw text" not in page, "source and reference are found by what the scores say"
    assert 'class="notice' not in page, "nothing is missing"


@pytest.mark.slow
def test_a_failing_stage_shows_the_logs_last_words_and_goes_on_only_with_the_same_settings(
    environment: dict[str, str], tmp_path: Path
) -> None:
    done = run({**environment, "LM_HEADS": "3"}, "--out", tmp_path / "run")
    assert done.returncode != 0
    assert "lm.en: failed, exit status" in done.stdout
    assert "do not divide the 16 channels" in done.stdout
    assert str(tmp_path / "run" / "lm.en" / "train.log") in done.stdout
    assert "Stopped in stage 3" in done.stderr

    other = run(environment, "--out", tmp_path / "run")
    assert other.returncode == 2
    assert "was begun with other settings (< LM_HEADS=3 > LM_HEADS=2" in other.stderr
    assert "Choose another --out" in other.stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--fast"], "--fast: unknown option"),
        (["--minutes", "soon"], "--minutes soon: give a number"),
        (["--seed"], "--seed needs a value"),
    ],
)
def test_wrong_flags_are_named(environment: dict[str, str], flags: list[str], message: str) -> None:
    done = run(environment, *flags)
    assert done.returncode == 2
    assert message in done.stderr


def test_a_missing_shipped_model_is_named(environment: dict[str, str], tmp_path: Path) -> None:
    settings = {**environment, "PRETRAINED": str(tmp_path / "nowhere")}
    command = ["bash", "recipes/quickstart.sh", "--out", str(tmp_path / "run")]
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "nowhere/en-cloze.pt: no such file" in done.stderr
    assert "--from-scratch" in done.stderr
