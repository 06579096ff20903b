"""What the tests of the embedded corpus' recipes share: numbers of a tiny run, and a way to run a script with them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Callable

import pytest

ROOT = Path(__file__).parents[3]
TINY = {
    "BITEXT_LINES": "400",
    "MAX_RATIO": "0",
    "MAX_SOURCE": "40",
    "MAX_LEN": "12",
    "LM_DIM": "16",
    "LM_FFN": "16",
    "LM_LAYERS": "1",
    "LM_HEADS": "2",
    "LM_WARMUP": "1",
    "LM_UPDATES": "4",
    "LM_VALIDATE_EVERY": "2",
    "S2S_DIM": "16",
    "S2S_FFN": "16",
    "S2S_LAYERS": "1",
    "S2S_HEADS": "2",
    "S2S_TOKENS": "1000",
    "S2S_UPDATES": "12",
    "S2S_VALIDATE_EVERY": "6",
    "BEAM": "2",
}


@pytest.fixture(scope="session")
def tiny() -> dict[str, str]:
    """The numbers of a tiny run."""
    return dict(TINY)


@pytest.fixture(scope="session")
def start(small_corpus: Path) -> Callable[..., subprocess.Popen[str]]:
    """Start a script of recipes/ with the tests' own Python on the small corpus: its name, words, NUMBER=…."""

    def popen(script: str, *words: str, **numbers: str) -> subprocess.Popen[str]:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "NO_SETUP": "1", "CORPUS": str(small_corpus), "OMP_NUM_THREADS": "1"}
        return subprocess.Popen(
            ["bash", f"recipes/{script}", *words],
            cwd=ROOT,
            env={**os.environ, **TINY, **own, **numbers},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    return popen


@pytest.fixture(scope="session")
def run(start: Callable[..., subprocess.Popen[str]]) -> Callable[..., str]:
    """The same to its end, which has to be a good one; what it printed."""

    def shown(script: str, *words: str, **numbers: str) -> str:
        process = start(script, *words, **numbers)
        output = process.communicate()[0]
        assert process.returncode == 0, output
        return output

    return shown
