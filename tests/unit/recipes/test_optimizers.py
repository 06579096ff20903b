"""The optimizer study: every command that it runs parses, and its table and figure come from the logs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq import options

ROOT = Path(__file__).parents[3]
NAMES = ["sgd", "momentum", "nag", "adagrad", "adadelta", "rmsprop", "adam", "adamaxw"]
STUB = r"""#!/bin/sh
case "$*" in *'print("device"'*) echo "device 0 $PACKAGE"; exit 0 ;; esac
for word in "$@"; do printf '%s\037' "$word"; done >>"$CALLS"
echo >>"$CALLS"
"""


@pytest.fixture
def calls(tmp_path: Path) -> list[list[str]]:
    """The commands of a study of all optimizers at two learning rates."""
    stub = tmp_path / "bin" / "python"
    stub.parent.mkdir()
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    own = {"PATH": f"{stub.parent}{os.pathsep}{os.environ['PATH']}", "NO_SETUP": "1", "OUT": str(tmp_path)}
    own.update(CALLS=str(tmp_path / "calls"), PACKAGE=str(ROOT / "lmfusion"), FACTORS="1 10")
    study = ["bash", str(ROOT / "recipes" / "optimizers" / "study.sh")]
    done = subprocess.run(study, env={**os.environ, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [line.split("\037")[:-1] for line in (tmp_path / "calls").read_text(encoding="utf-8").splitlines()]


def test_all_runs_are_the_same_but_for_the_optimizer_and_its_rate(calls: list[list[str]]) -> None:
    trainings = [call[call.index("--") + 2 :] for call in calls if "lmfusion.runs.live" in call]
    assert len(trainings) == 2 * len(NAMES)
    common, chosen = set(), []
    for command in trainings:
        place = command.index("--user-dir")
        parser = options.get_training_parser()
        args = options.parse_args_and_arch(parser, [*command[:place], *command[place + 2 :]])
        chosen.append((args.optimizer, getattr(args, "momentum", None), args.lr[0]))
        start, end = command.index("--optimizer"), command.index("--clip-norm")
        rest = [*command[:start], *command[end:]]
        for flag in ("--lr", "--save-dir"):
            rest[rest.index(flag) + 1] = ""
        common.add(tuple(rest))
    assert len(common) == 1
    assert len(set(chosen)) == len(chosen)
    assert calls[-1][-len(NAMES) :] == NAMES


@pytest.mark.slow
def test_the_figure_and_the_table_take_the_best_learning_rate(tmp_path: Path) -> None:
    for name, losses in {"sgd-0.5": (9.0, 8.0), "sgd-5": (float("nan"),) * 2, "adam-0.001": (7.0, 6.0)}.items():
        (tmp_path / name).mkdir()
        records = [
            {"valid_loss": f"{loss}", "valid_ppl": f"{2**loss:.2f}", "valid_num_updates": f"{updates}"}
            for updates, loss in zip((10, 20), losses)
        ]
        lines = [f"2026-01-01 00:00:00 | INFO | valid | {json.dumps(record)}\n" for record in records]
        (tmp_path / name / "train.log").write_text("".join(lines), encoding="utf-8")
    words = [sys.executable, ROOT / "recipes" / "optimizers" / "figure.py", tmp_path, "--optimizers"]
    done = subprocess.run([*words, "sgd", "adam"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert rows == [["adam", "0.001", "64.00", "20", "0.001"], ["sgd", "0.5", "256.00", "20", "0.5, 5"]]
    assert (tmp_path / "optimizers.svg").stat().st_size > 1000
    missing = subprocess.run([*words, "nag"], capture_output=True, text=True, check=False)
    assert (missing.returncode, "no training of nag" in missing.stderr) == (2, True)
