"""A small copy of the repository with stubs for Python, pip and df, for the tests of scripts/setup.sh.

Only the tools that the script needs are on its PATH, so that no Python of this machine is found.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
TOOLS = ["awk", "bash", "cat", "chmod", "cksum", "cp", "dirname", "grep", "mkdir", "rm", "tee"]

# A Python whose version is VERSION: `-m venv` copies it into the environment, pip notes its calls and can be told
# to fail by the files pip-fails (what it prints; removed by the test) and no-cpu-build.
PYTHON_STUB = r"""#!/usr/bin/env bash
case "$*" in
"-c import sys;"*) echo VERSION ;;
"-c import venv, ensurepip") [[ ! -e no-venv-module ]] ;;
"-m venv --clear .venv") rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python ;;
"-m pip --version") [[ ! -e "$(dirname "$0")/no-pip" ]] ;;
"-m pip show --quiet torch") [[ -e .venv/has-torch ]] ;;
"-m pip install --quiet"*)
    [[ ! -e no-cpu-build ]] || { cat no-cpu-build >&2 && exit 1; }
    echo "$*" >>pip-calls && : >.venv/has-torch ;;
"-m pip install"*)
    echo "$*" >>pip-calls
    echo "Requirement already satisfied: something"
    if [[ -e pip-fails ]]; then
        cat pip-fails >&2
        exit 1
    fi ;;
-) cat >/dev/null ;;
*) echo "the stub does not know: $*" >&2 && exit 9 ;;
esac
"""


class Checkout:
    """A copy of what setup.sh needs, and a PATH of stubs."""

    def __init__(self, folder: Path) -> None:
        self.root, self.bin = folder / "clone", folder / "bin"
        (self.root / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("scripts/setup.sh", "constraints.txt", "setup.py"):
            shutil.copy(ROOT / name, self.root / name)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))
        self.free_disk(megabytes=50_000)

    def stub(self, name: str, text: str) -> None:
        """Put a command on the PATH."""
        (self.bin / name).write_text(text.replace("/usr/bin/env bash", str(shutil.which("bash"))), encoding="utf-8")
        (self.bin / name).chmod(0o755)

    def python(self, name: str, version: str) -> None:
        """Put a Python of this version on the PATH."""
        self.stub(name, PYTHON_STUB.replace("VERSION", version))

    def free_disk(self, megabytes: int) -> None:
        """Let df report this much space."""
        line = f"/dev/disk 99999999 1 {megabytes * 1024} 1% /"
        self.stub("df", f'#!/usr/bin/env bash\necho "Filesystem 1024-blocks Used Available"\necho "{line}"\n')

    def run(self, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run setup.sh."""
        clean = {key: value for key, value in os.environ.items() if key not in ("PYTHON", "TORCH_INDEX")}
        return subprocess.run(
            ["bash", "scripts/setup.sh"],
            cwd=self.root,
            env={**clean, **environment, "PATH": str(self.bin)},
            capture_output=True,
            text=True,
            check=False,
        )

    def succeed(self, **environment: str) -> str:
        """Run setup.sh; what it printed."""
        result = self.run(**environment)
        assert result.returncode == 0, result.stderr
        return result.stdout

    def fail(self, **environment: str) -> str:
        """Run setup.sh; its one error message."""
        result = self.run(**environment)
        assert result.returncode == 1, result.stdout + result.stderr
        assert result.stderr.count("setup: error:") == 1
        return result.stderr.partition("setup: error: ")[2]

    @property
    def pip_calls(self) -> list[str]:
        """Arguments of each installation."""
        calls = self.root / "pip-calls"
        return calls.read_text(encoding="utf-8").splitlines() if calls.exists() else []


@pytest.fixture
def bare(tmp_path: Path) -> Checkout:
    """A checkout on a machine without any Python."""
    return Checkout(tmp_path)


@pytest.fixture
def checkout(bare: Checkout) -> Checkout:
    """A checkout on a machine with Python 3.11."""
    bare.python("python3", "3.11")
    return bare
