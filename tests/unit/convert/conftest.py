"""Random checkpoints in the released format, what an independent calculation makes of them, and what ours does."""

from __future__ import annotations

import importlib.util
import os
from argparse import Namespace
from pathlib import Path
from types import ModuleType
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

from lmfusion import cli

HERE = Path(__file__).parent
FIXTURES = HERE.parents[3] / "shared" / "fixtures" / "released-format"
WORDS = {"src": 20, "tgt": 17}  # and fairseq's four special symbols


def sibling(name: str) -> ModuleType:
    """A module that lies beside this one."""
    spec = importlib.util.spec_from_file_location(f"convert_{name}", HERE / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """The released models, calculated independently: reference.py."""
    return sibling("reference")


@pytest.fixture(scope="session")
def make() -> ModuleType:
    """Random checkpoints in the released format: make_released.py."""
    return sibling("make_released")


@pytest.fixture(scope="session")
def released_code() -> Path:
    """Checkpoints of the released code and what that code gave for them, where they are kept beside the repository."""
    if not FIXTURES.is_dir():
        pytest.skip("no checkpoints of the released code beside the repository")
    return FIXTURES


@pytest.fixture
def dicts(tmp_path: Path) -> dict[str, str]:
    """Paths of dict.en.txt (``src``, 24 symbols) and dict.de.txt (``tgt``, 21 symbols)."""
    paths = {}
    for side, lang in (("src", "en"), ("tgt", "de")):
        path = tmp_path / f"dict.{lang}.txt"
        path.write_text("".join(f"{side}{number} {100 - number}\n" for number in range(WORDS[side])), encoding="utf-8")
        paths[side] = str(path)
    return paths


@pytest.fixture
def save(tmp_path: Path) -> Callable[..., str]:
    """Save weights and flags as the released code did."""

    def saved(weights: dict[str, Tensor], args: dict[str, Any], name: str = "released.pt", **extra: Any) -> str:
        state = {
            "args": Namespace(**args),
            "model": weights,
            "optimizer_history": [{"criterion_name": "CrossEntropyCriterion", "num_updates": 11}],
            "extra_state": {"epoch": 1, "val_loss": 3.0},
            **extra,
        }
        torch.save(state, tmp_path / name)
        return str(tmp_path / name)

    return saved


@pytest.fixture
def close() -> Callable[[Tensor, Tensor], None]:
    """The figure the issue asks for: 1e-5, absolutely, in float32."""

    def check(found: Tensor, expected: Tensor) -> None:
        torch.testing.assert_close(found.double(), expected.double(), rtol=0, atol=1e-5)

    return check


@pytest.fixture
def refused(dicts: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """The one line printed for a file that is not converted; no file is there that was not there before."""

    def run(path: str, *flags: str) -> str:
        before = set(os.listdir(tmp_path))
        given = flags or ("--dict", dicts["src"])
        assert cli.main(["convert", path, "--out", str(tmp_path / "out.pt"), *given]) == 2
        printed = capsys.readouterr()
        assert set(os.listdir(tmp_path)) == before
        line = printed.err[printed.err.index("lmfusion: error: ") :]
        assert line.count("\n") == 1
        return line

    return run


@pytest.fixture
def cloze(make: ModuleType) -> dict[str, Tensor]:
    """Weights of a tiny cloze LM of 24 symbols."""
    weights: dict[str, Tensor] = make.language_model(make.CLOZE, 24)
    return weights
