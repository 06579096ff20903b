"""The folders with a script per row, with a stub for Python; row_groups.py says which rows there are."""

from __future__ import annotations

import os
import subprocess
import sys
from argparse import Namespace
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

import pytest
from fairseq import options

sys.path.insert(0, str(Path(__file__).parent))

RECIPES = Path(__file__).parents[4] / "recipes"
# Answers the question for the device, notes every other command, and fails where $FAIL is among the words.
STUB = r"""#!/bin/sh
case "$*" in *'print("device"'*) echo "device 0 $PACKAGE"; exit 0 ;; esac
for word in "$@"; do printf '%s\037' "$word"; done >>"$CALLS"
echo >>"$CALLS"
case " $* " in *" $FAIL "*) exit ${STATUS:-3} ;; esac
"""


@dataclass
class Recipes:
    """Runs scripts of a folder with a stub in place of Python."""

    out: Path
    environment: dict[str, str]

    def answer(self, pattern: str, commands: str) -> None:
        """Let the stub do this for commands that match; unless it exits, it notes them as the others."""
        answer = f"""case "$*" in {pattern}) {commands} ;; esac\n"""
        (self.out / "bin" / "python").write_text(STUB.replace("for word", f"{answer}for word", 1), encoding="utf-8")

    def run(self, script: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        """What became of a script: ``run("debian_ende/baseline.sh", S2S_LR="0.003")``."""
        return subprocess.run(
            ["bash", RECIPES / script, *words],
            env={**self.environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    def succeed(self, script: str, **settings: str) -> None:
        """Run a script to its end."""
        done = self.run(script, **settings)
        assert done.returncode == 0, done.stderr

    def refused(self, script: str, *words: str, **settings: str) -> str:
        """What a script says that refuses its input."""
        done = self.run(script, *words, **settings)
        assert done.returncode == 2
        return done.stderr

    def calls(self) -> list[list[str]]:
        """The commands so far, without Python's own option -P."""
        lines = (self.out / "calls").read_text(encoding="utf-8").splitlines()
        return [[word for word in line.split("\037")[:-1] if word != "-P"] for line in lines]

    def steps(self) -> list[list[str]]:
        """The steps so far: their run folder and their name."""
        return [call[2:4] for call in self.calls() if call[:2] == ["-m", "lmfusion.runs.live"]]

    def command(self, name: str, step: str = "train") -> list[str]:
        """The fairseq command of a run folder's step."""
        head = ["-m", "lmfusion.runs.live", str(self.out / name), step]
        (call,) = [call for call in self.calls() if call[:4] == head]
        return call[call.index("--") + 1 :]


@pytest.fixture
def recipes(tmp_path: Path) -> Recipes:
    """Scripts that write into a folder of the test's own."""
    stub = tmp_path / "bin" / "python"
    stub.parent.mkdir()
    stub.write_text(STUB, encoding="utf-8")
    stub.chmod(0o755)
    text = tmp_path / "data" / "text"
    text.mkdir(parents=True)
    for side in ("en", "de", "description", "synopsis"):
        (text / f"test.{side}").write_text("one line\n", encoding="utf-8")
    path = f"{stub.parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "NO_SETUP": "1", "OUT": str(tmp_path), "CALLS": str(tmp_path / "calls")}
    own.update(FAIL="nothing", PACKAGE=str(RECIPES.parent / "lmfusion"))
    return Recipes(tmp_path, {**os.environ, **own})


@pytest.fixture
def parse() -> Callable[..., Namespace]:
    """fairseq's reading of a training command: ``parse(command, "denoising")``."""

    def parsed(command: list[str], task: str = "translation") -> Namespace:
        place = command.index("--user-dir")  # this process has imported it already
        words = [*command[1:place], *command[place + 2 :]]
        args: Namespace = options.parse_args_and_arch(options.get_training_parser(task), words)
        return args

    return parsed
