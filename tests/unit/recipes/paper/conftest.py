"""The scripts that repeat the paper's experiments, with a stub for Python, and the commands of their dry runs."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable

import pytest
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf

ROOT = Path(__file__).parents[4]
# Says where the plugin is and that there are $HERE GPUs, and notes every other command.
STUB = r"""#!/bin/sh
case "$*" in
*'print("device"'*) echo "device 0 PACKAGE"; exit 0 ;;
*'print("gpus"'*) echo "gpus ${HERE:-0}"; exit 0 ;;
*lowest_loss.py*) for word in "$@"; do last="$word"; done; echo "$last" ;;
esac
printf '%s DROPOUT=%s LM=%s\n' "$*" "$S2S_DROPOUT" "$ELMO_DROPOUT" >>"$CALLS"
"""
SLURM = ("SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "GPUS", "NODES")


@dataclass
class Scripts:
    """Runs scripts of recipes/ from their names: ``run("lm/en_cloze", "--dry-run")``."""

    folder: Path
    environment: dict[str, str]

    def run(self, script: str, *words: str, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", ROOT / "recipes" / f"{script}.sh", *words],
            env={**self.environment, **settings},
            capture_output=True,
            text=True,
            check=False,
        )

    def refused(self, script: str, *words: str, **settings: str) -> str:
        """The one line of a script that refuses its input."""
        done = self.run(script, *words, **settings)
        assert done.returncode == 2, done.stdout + done.stderr
        lines = done.stderr.splitlines()
        assert len(lines) == 1, done.stderr
        assert lines[0].startswith("error: ")
        return lines[0].removeprefix("error: ")

    def dry(self, script: str, *words: str, **settings: str) -> str:
        """What a dry run prints."""
        done = self.run(script, "--dry-run", *words, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def commands(self, script: str, *words: str, program: str = "fairseq-train", **settings: str) -> list[list[str]]:
        """The commands of a dry run that run this program, as words."""
        lines = self.dry(script, *words, **settings).splitlines()
        commands = [shlex.split(line) for line in lines if line and not line.startswith("#") and " tokens" not in line]
        return [command for command in commands if program in command]

    def training(self, script: str, *words: str, **settings: str) -> list[str]:
        """The words of a dry run's only training."""
        (command,) = self.commands(script, *words, **settings)
        return command


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    stub = tmp_path / "bin" / "python"
    stub.parent.mkdir()
    stub.write_text(STUB.replace("PACKAGE", str(ROOT / "lmfusion")), encoding="utf-8")
    stub.chmod(0o755)
    path = f"{stub.parent}{os.pathsep}{os.environ['PATH']}"
    inherited = {name: value for name, value in os.environ.items() if name not in SLURM}
    own = {"PATH": path, "NO_SETUP": "1", "CALLS": str(tmp_path / "calls"), "TMPDIR": str(tmp_path)}
    return Scripts(tmp_path, {**inherited, **own})


@pytest.fixture
def configure() -> Callable[[list[str]], Any]:
    """fairseq's configuration of a training command."""

    def build(command: list[str]) -> Any:
        words = command[command.index("fairseq-train") + 1 :]
        place = words.index("--user-dir")  # this process has imported it already
        args = options.parse_args_and_arch(options.get_training_parser(), [*words[:place], *words[place + 2 :]])
        return convert_namespace_to_omegaconf(args)

    return build
