"""The benchmarks are scripts beside each other: their folder goes on the path as when one of them is run."""

from __future__ import annotations

import importlib
import json
import logging
import shlex
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parents[3] / "benchmarks"
TINY = "--channels 32 --layers 1 --lm-layers 2 --vocabulary 200 --rounds 1 --threads 1".split()


@pytest.fixture(autouse=True)
def _as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A benchmark sets threads and matplotlib's log level for its process."""
    monkeypatch.syspath_prepend(str(FOLDER))
    threads = torch.get_num_threads()
    level = logging.getLogger("matplotlib").level
    yield
    torch.set_num_threads(threads)
    logging.getLogger("matplotlib").setLevel(level)


@pytest.fixture
def module() -> Callable[[str], Any]:
    """A script of benchmarks/ by name."""
    return importlib.import_module


@pytest.fixture
def measure(module: Callable[[str], Any], tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Run a benchmark on tiny models; returns its JSON."""

    def run(name: str, options: str, *, tiny: bool = True) -> dict[str, Any]:
        path = tmp_path / f"{name}.json"
        module(name).main([*(TINY if tiny else []), *shlex.split(options), "--json", str(path)])
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        return found

    return run
