"""recipes/debian_ende/study.sh, really trained at a tiny scale: killed, run again, run a third time."""

from __future__ import annotations

import json
import signal
import time
from pathlib import Path
from subprocess import Popen
from typing import Callable

import pytest

STUDY = ["debian_ende/study.sh", "--sizes", "400", "--seeds", "1", "--jobs", "1"]
STUDY += ["--rows", "baseline", "src_elmo_shdemb", "--budget", "cpu", "updates=400:12", "validate_every=6"]
STUDY += ["representation_dropouts=0.0,0.3"]


@pytest.mark.slow
def test_it_is_killed_goes_on_reports_and_does_nothing_twice(start: Callable[..., Popen[str]], tmp_path: Path) -> None:
    out = tmp_path / "study"

    killed = start(*STUDY, "--out", str(out))
    first = out / "bitext-400" / "seed-1" / "dropout0.2-rep0.0" / "baseline"
    while not (first / "scores.json").exists():
        assert killed.poll() is None, killed.communicate()[0]
        time.sleep(0.2)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    score = json.loads((first / "scores.json").read_text(encoding="utf-8"))

    finished = start(*STUDY, "--out", str(out))
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

    again = start(*STUDY, "--out", str(out))
    shown = again.communicate()[0]
    assert again.returncode == 0
    assert shown.count("finished before") == 4
