"""recipes/debian_ende/study.sh, really trained at a tiny scale: killed, run again, run a third time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TINY = {
    "MAX_RATIO": "0",
    "S2S_DIM": "16",
    "S2S_FFN": "16",
    "S2S_LAYERS": "1",
    "S2S_HEADS": "2",
    "S2S_TOKENS": "1000",
    "BEAM": "2",
}
STUDY = ["bash", "recipes/debian_ende/study.sh", "--sizes", "400", "--seeds", "1", "--jobs", "1"]
STUDY += ["--rows", "baseline", "src_elmo_shdemb", "--budget", "cpu", "updates=400:12", "validate_every=6"]


def start(environment: dict[str, str], out: Path) -> subprocess.Popen[str]:
    command = [*STUDY, "representation_dropouts=0.0,0.3", "--out", str(out)]
    return subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


@pytest.mark.slow
def test_it_is_killed_goes_on_reports_and_does_nothing_twice(small_corpus: Path, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "NO_SETUP": "1", "CORPUS": str(small_corpus), "OMP_NUM_THREADS": "1"}
    environment, out = {**os.environ, **TINY, **own}, tmp_path / "study"

    killed = start(environment, out)
    first = out / "bitext-400" / "seed-1" / "dropout0.2-rep0.0" / "baseline"
    while not (first / "scores.json").exists():
        assert killed.poll() is None, killed.communicate()[0]
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    score = json.loads((first / "scores.json").read_text(encoding="utf-8"))

    finished = start(environment, out)
    shown = finished.communicate()[0]
    assert finished.returncode == 0, shown
    assert "400 pairs baseline seed 1: finished before" in shown
    (choice,) = json.loads((out / "choices.json").read_text(encoding="utf-8"))
    losses = choice["validation_loss"]
    assert set(losses) == {"dropout0.2-rep0.0", "dropout0.2-rep0.3"}
    assert f"dropout0.2-rep{choice['representation']}" == min(losses, key=losses.get)
    scored = {path.parent.relative_to(out / "bitext-400" / "seed-1") for path in out.rglob("scores.json")}
    assert scored == {
        Path("dropout0.2-rep0.0/baseline"),
        Path(f"dropout0.2-rep{choice['representation']}/src_elmo_shdemb"),
    }, "the test set is scored with the chosen setting only"
    assert json.loads((first / "scores.json").read_text(encoding="utf-8")) == score
    page = (out / "report" / "report.html").read_text(encoding="utf-8")
    assert "SRC-ELMO+SHDEMB" in page
    assert "Significance" in page

    again = start(environment, out)
    shown = again.communicate()[0]
    assert again.returncode == 0
    assert shown.count("finished before") == 4
