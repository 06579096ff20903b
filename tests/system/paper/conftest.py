"""The paper's corpora, prepared once from stand-ins for their archives, and what runs the recipes on them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
REAL = Path(sys.executable).parent
CORPORA = {"wmt18_ende": ["--subsets", "160K", "5186K", "--bitext-bpe", "160K"], "wmt18_entr": [], "cnn_dm": []}


@dataclass(frozen=True)
class Laboratory:
    """Prepared data, everything trained on it, and what runs scripts on both."""

    folder: Path
    sources: Path
    commands: Path
    """Folder of the stand-ins for ``python`` and the rest (preloaded.py)."""
    said: dict[str, str] = field(default_factory=dict)
    """What the preparation of each corpus printed."""

    @property
    def data(self) -> Path:
        """What data-prep/ filled."""
        return self.folder / "data"

    @property
    def runs(self) -> Path:
        """Where everything trained lies."""
        return self.folder / "runs"

    def environment(self, real: bool = False, **settings: str) -> dict[str, str]:
        """The environment of a script: with the stand-ins, or with the commands as they are installed."""
        path = f"{REAL if real else self.commands}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "NO_SETUP": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        return {**os.environ, **own, **settings}

    def preparation(self, corpus: str, *words: object, data: Path | None = None) -> list[str]:
        """The command line that prepares a corpus."""
        flags = ["--scale", "tiny", "--sources", self.sources, "--out", data or self.data, "--workers", 1, *words]
        return ["bash", str(ROOT / "data-prep" / f"{corpus}.sh"), *map(str, flags)]

    def row(self, script: str, *words: object, runs: Path | None = None) -> list[str]:
        """The command line of a script of recipes/."""
        flags = ["--scale", "tiny", "--data", self.data, "--runs", runs or self.runs]
        return ["bash", str(ROOT / "recipes" / f"{script}.sh"), *map(str, [*words, *flags])]

    def start(self, command: list[str], real: bool = False, **settings: str) -> subprocess.CompletedProcess[str]:
        """Run a command line to its end."""
        own = self.environment(real, **settings)
        return subprocess.run(command, env=own, capture_output=True, text=True, check=False)

    def kill_when(self, command: list[str], line: str, **settings: str) -> None:
        """Start a command line with the installed commands; kill all its processes as soon as it prints this."""
        own = self.environment(real=True, **settings)
        pipe, nothing = subprocess.PIPE, subprocess.DEVNULL
        begun = subprocess.Popen(command, stdout=pipe, stderr=nothing, text=True, env=own, start_new_session=True)
        assert begun.stdout is not None
        while line not in begun.stdout.readline():
            assert begun.poll() is None, "it ended before it printed that"
        os.killpg(begun.pid, signal.SIGKILL)
        begun.wait()
        begun.stdout.close()

    def prepare(self, corpus: str, *words: object, data: Path | None = None) -> str:
        """Prepare a corpus; what it printed."""
        done = self.start(self.preparation(corpus, *words, data=data))
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def recipe(self, script: str, *words: object, real: bool = False, **settings: str) -> str:
        """Run a script of recipes/; what it printed."""
        done = self.start(self.row(script, *words), real, **settings)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def refused(self, command: list[str]) -> str:
        """Run a script that refuses its input; the one line it says of it."""
        done = self.start(command)
        lines = [line for line in done.stderr.splitlines() if line]
        assert done.returncode in {1, 2}, done.stdout + done.stderr
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")

    def run_json(self, run: str) -> dict[str, Any]:
        """A run folder's record."""
        record: dict[str, Any] = json.loads((self.runs / run / "run.json").read_text("utf-8"))
        return record

    def scores(self, run: str) -> dict[str, Any]:
        """A run folder's scores by test set."""
        scores: dict[str, Any] = json.loads((self.runs / run / "scores.json").read_text("utf-8"))
        return scores


@pytest.fixture(scope="session")
def quick_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder for the front of PATH, whose commands start at once; see preloaded.py."""
    folder = tmp_path_factory.mktemp("commands")
    words = [sys.executable, str(Path(__file__).with_name("preloaded.py")), str(folder / "socket"), str(folder / "bin")]
    own = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=own) as server:
        assert server.stdout is not None
        assert "ready\n" in iter(server.stdout.readline, "")
        yield folder / "bin"
        server.terminate()


@pytest.fixture(scope="session")
def untouched(tmp_path_factory: pytest.TempPathFactory, standin_sources: Path, quick_commands: Path) -> Laboratory:
    """A laboratory with sources and no data yet."""
    return Laboratory(tmp_path_factory.mktemp("laboratory"), standin_sources, quick_commands)


def made(data: Path) -> dict[str, int]:
    """When each file was made."""
    return {str(path): path.stat().st_mtime_ns for path in data.rglob("*") if path.is_file() and path.suffix != ".json"}


@pytest.fixture(scope="session")
def laboratory(untouched: Laboratory) -> Laboratory:
    """All corpora of the paper; the first was killed half-way and gone on with."""
    words = untouched.preparation("wmt18_ende", *CORPORA["wmt18_ende"])
    untouched.kill_when(words, "newscrawl/tok.en")
    before = made(untouched.data)
    for corpus, flags in CORPORA.items():
        untouched.said[corpus] = untouched.prepare(corpus, *flags)
    finished = {path: time for path, time in before.items() if ".partial" not in path and "/.lock" not in path}
    assert finished.items() <= made(untouched.data).items(), "a finished stage was done again"
    assert len(finished) > 40
    return untouched
