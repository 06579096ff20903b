"""A trained model, the same as one packed file, sentences and their translations."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

BEAM = ("--beam", 2, "--max-len-b", 10)
Saved = Callable[..., Path]


@pytest.fixture(scope="session")
def trained(commands: Any, lm_files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A SRC-ELMO model of two updates with noise on its matrices, so that sentences differ in their translations."""
    out = tmp_path_factory.mktemp("packing")
    row = ("--arch", "src_elmo_tiny", "--src-lm", lm_files["src"], "--src-elmo-affine")
    commands.ok(*commands.training(out, 2, *row, *commands.text_flags))
    state = read_checkpoint(out / "checkpoint_last.pt")
    generator = torch.Generator().manual_seed(1)
    for tensor in state["model"].values():
        if tensor.is_floating_point() and tensor.dim() > 1:
            tensor.add_(torch.randn(tensor.shape, generator=generator), alpha=1.0)
    torch.save(state, out / "trained.pt")
    return out / "trained.pt"


@pytest.fixture(scope="session")
def changed(trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """Writes a copy of a model with entries replaced; None takes one out."""
    out = tmp_path_factory.mktemp("changed")

    def save(source: Path = trained, **entries: Any) -> Path:
        state = {**read_checkpoint(source), **entries}
        path = out / f"{len(list(out.iterdir()))}.pt"
        torch.save({name: value for name, value in state.items() if value is not None}, path)
        return path

    return save


@pytest.fixture(scope="session")
def packed(commands: Any, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model as one file, in full precision."""
    path = tmp_path_factory.mktemp("packed") / "m.lmf"
    commands.ok("lmfusion", "pack", trained, "--out", path, "--full", "--licence", "CC0\nAll of it.")
    return path


@pytest.fixture(scope="session")
def text(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of the test set."""
    lines = (commands.prepared / "text" / "test.en").read_text(encoding="utf-8").splitlines()[:9]
    path = tmp_path_factory.mktemp("text") / "new.en"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def translations(trained: Path, text: Path) -> list[str]:
    """By Python."""
    model = lmfusion.load_model(trained)
    found: list[str] = model.translate(text.read_text(encoding="utf-8").splitlines(), beam=2, max_len_b=10)
    assert len(set(found)) > 3, "the model tells sentences apart"
    return found


@pytest.fixture
def start(packed: Path) -> Iterator[Callable[..., subprocess.Popen[bytes]]]:
    """Starts ``lmfusion translate`` on the packed file."""
    started = []

    def run(*words: object, **streams: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "lmfusion.cli", "translate", str(packed), *map(str, (*BEAM, *words))]
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TERM": "dumb"}
        started.append(subprocess.Popen(command, env=environment, **streams))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.wait()
