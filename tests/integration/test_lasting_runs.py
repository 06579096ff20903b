"""Runs that go on: with a damaged last checkpoint, with the frozen LM in a file of its own, on a disk that is full."""

from __future__ import annotations

import copy
import os
import random
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.locks import LOCK_NAME
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import InputError

ELMO = ("--arch", "src_elmo_tiny", "--src-elmo-affine", "--share-decoder-input-output-embed")
OFTEN = ("--save-interval-updates", 1, "--keep-interval-updates", 2)


def hypotheses(output: str) -> list[str]:
    return sorted(line for line in output.splitlines() if line.startswith(("H-", "D-", "P-")))


@pytest.fixture(scope="module")
def run(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of three updates with ``--store-lm-once``."""
    out = tmp_path_factory.mktemp("stored_once")
    flags = [*ELMO, *OFTEN, "--src-lm", lm_files["src"], "--store-lm-once"]
    commands.ok(*commands.training(out, 3, *flags))
    return out


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's content; the lock's says which process had it last."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != LOCK_NAME}


def copied(run: Path, out: Path) -> Path:
    out.mkdir()
    for path in run.iterdir():
        (out / path.name).write_bytes(path.read_bytes())
    return out


@pytest.mark.slow
def test_a_run_moves_resumes_and_is_folded_into_one_file(
    commands: Any, lm_files: dict[str, Path], run: Path, tmp_path: Path
) -> None:
    moved = copied(run, tmp_path / "moved")
    store = [path for path in moved.iterdir() if path.name.startswith("frozen_lm")]
    assert len(store) == 1
    assert store[0].stat().st_size > 40_000
    commands.ok("lmfusion", "export", moved / "checkpoint_last.pt", "--out", tmp_path / "one.pt")
    files = (moved / "checkpoint_last.pt", tmp_path / "one.pt")
    apart, one = [hypotheses(commands.ok(*commands.generation(path))) for path in files]
    assert apart == one != []
    flags = [*ELMO, *OFTEN, "--src-lm", lm_files["src"], "--store-lm-once"]
    assert "@ 3 updates" in commands.ok(*commands.training(moved, 4, *flags))
    assert [path for path in moved.iterdir() if path.name.startswith("frozen_lm")] == store
    store[0].unlink()
    message = commands.refused(*commands.generation(moved / "checkpoint_last.pt"))
    assert f"{store[0].name} beside it, and that file is missing: copy it" in message


def test_a_damaged_last_checkpoint_is_refused_and_the_one_before_resumes(
    commands: Any, lm_files: dict[str, Path], run: Path, tmp_path: Path
) -> None:
    damaged = copied(run, tmp_path / "damaged")
    last = damaged / "checkpoint_last.pt"
    last.write_bytes(last.read_bytes()[:-20_000])
    before = {path.name: path.read_bytes() for path in damaged.iterdir()}
    words = commands.training(damaged, 4, *ELMO, *OFTEN, "--src-lm", lm_files["src"], "--store-lm-once")
    message = commands.refused(*words)
    assert f"{last} cannot be read as a checkpoint: it is truncated or damaged" in message
    assert {path.name: path.read_bytes() for path in damaged.iterdir()} == before
    last.write_bytes((damaged / "checkpoint_1_2.pt").read_bytes())
    assert "(epoch 1 @ 2 updates)" in commands.ok(*words)


def test_a_finished_run_stays_as_it_is(commands: Any, lm_files: dict[str, Path], run: Path, tmp_path: Path) -> None:
    """fairseq would make a fourth update of three, and write it over the last checkpoint."""
    moved = copied(run, tmp_path / "moved")
    before = contents(moved)
    flags = [*ELMO, *OFTEN, "--src-lm", lm_files["src"], "--store-lm-once"]
    output = commands.ok(*commands.training(moved, 3, *flags))
    assert "this run is finished: 3 updates are done, and --max-update is 3" in output
    assert contents(moved) == before


@pytest.mark.slow
def test_a_full_disk_ends_training_in_one_line(
    commands: Any, lm_files: dict[str, Path], run: Path, tmp_path: Path
) -> None:
    """Under a limit on the size of files, which the operating system enforces as it does the size of a disk."""
    moved = copied(run, tmp_path / "full")
    before = contents(moved)
    flags = [*ELMO, *OFTEN, "--src-lm", lm_files["src"], "--store-lm-once"]
    words = [str(word) for word in commands.training(moved, 9, *flags)]
    command = [sys.executable, "-c", "import sys; from fairseq_cli.train import cli_main; cli_main()", *words[1:]]
    limited = ["bash", "-c", 'ulimit -f 100 && exec "$@"', "bash", *command]
    done = subprocess.run(
        limited, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 1
    last = done.stderr.rstrip().splitlines()[-1]
    assert re.match(r"lmfusion: error: .*checkpoint_1_4\.pt could not be written \(File too", last)
    assert "Traceback" not in done.stderr
    assert contents(moved) == before


@pytest.mark.slow
def test_checkpoints_with_values_of_wrong_types_translate_or_are_refused(
    commands: Any, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    state = read_checkpoint(run / "checkpoint_last.pt")
    wrong = [None, -1, 10**12, 1.5, "x", [], {}, True, torch.zeros(0), torch.zeros(2, 2), b"x"]
    path, refused = tmp_path / "hostile.pt", 0
    monkeypatch.chdir(tmp_path)
    for seed in range(250):
        rng, changed = random.Random(seed), copy.deepcopy(state)
        section = changed["cfg"][rng.choice(("model", "model", "task"))] if rng.random() < 0.9 else changed["cfg"]
        section = vars(section) if isinstance(section, Namespace) else section
        section[rng.choice(sorted(section))] = copy.deepcopy(rng.choice(wrong))
        torch.save(changed, path)
        try:
            model = lmfusion.load_model(path, data=str(commands.bitext))
            assert all(torch.is_tensor(value) for value in model.models[0].state_dict().values())
        except InputError as error:
            refused += len(str(error)) > 20
        except BaseException:
            print(f"seed {seed}")
            raise
    assert refused > 20
