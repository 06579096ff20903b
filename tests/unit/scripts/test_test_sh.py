"""scripts/test.sh and lint.sh with stubs for their tools: what is passed on, and which status comes back."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
LINT = ["ruff [check] [.]", "ruff [format] [--check] [--quiet] [.]", "mypy []", "shellcheck"]
STUB = """#!/usr/bin/env bash
{ printf "%s" "$(basename "$0")"; printf " [%s]" "$@"; echo; } >>calls
exit STATUS
"""


PYTEST = f"python [-m] [pytest] [-n] [{os.sysconf('SC_NPROCESSORS_ONLN')}] [--dist] [loadfile] [--no-loadscope-reorder]"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The scripts, a setup.sh that does nothing, and an environment of stubs that all succeed."""
    (tmp_path / "scripts").mkdir()
    for name in ("test.sh", "lint.sh"):
        shutil.copy(ROOT / "scripts" / name, tmp_path / "scripts")
    (tmp_path / "scripts" / "setup.sh").write_text("echo setup >>calls\n", encoding="utf-8")
    for tool in ("ruff", "mypy", "shellcheck", "python"):
        stub(tmp_path, tool, 0)
    return tmp_path


def stub(clone: Path, tool: str, status: int) -> None:
    """Let a tool note its arguments and end with a status."""
    path = clone / ".venv" / "bin" / tool
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(STUB.replace("STATUS", str(status)), encoding="utf-8")
    path.chmod(0o755)


def run(clone: Path, script: str, *arguments: str) -> tuple[int, list[str]]:
    """The status of a script, and the calls it made; of shellcheck's not which files it was given."""
    result = subprocess.run(["bash", clone / "scripts" / script, *arguments], check=False, capture_output=True)
    calls = (clone / "calls").read_text(encoding="utf-8").splitlines()
    return result.returncode, [call.split()[0] if call.startswith("shellcheck ") else call for call in calls]


def test_sets_up_then_lints_then_tests(clone: Path) -> None:
    status, calls = run(clone, "test.sh")
    assert status == 0
    assert calls == ["setup", *LINT, PYTEST]


def test_slow_selects_all_tests_and_the_rest_is_passed_on(clone: Path) -> None:
    _, calls = run(clone, "test.sh", "--slow", "tests/unit", "-k", "bleu or cli")
    assert calls[-1] == f"{PYTEST} [-m] [slow or not slow] [tests/unit] [-k] [bleu or cli]"


@pytest.mark.parametrize(("tool", "status"), [("ruff", 1), ("mypy", 1), ("shellcheck", 1), ("python", 5)])
def test_any_failure_is_the_status_and_all_is_run(clone: Path, tool: str, status: int) -> None:
    stub(clone, tool, status)
    assert run(clone, "test.sh") == (status, ["setup", *LINT, PYTEST])


def test_lint_passes_fix_on_to_ruff(clone: Path) -> None:
    assert run(clone, "lint.sh", "--fix") == (0, ["ruff [check] [--fix] [.]", *LINT[1:]])


@pytest.mark.parametrize("tool", ["ruff", "mypy", "shellcheck"])
def test_lint_sets_up_where_its_tools_are_missing(clone: Path, tool: str) -> None:
    (clone / ".venv" / "bin" / tool).unlink()
    status, calls = run(clone, "lint.sh")
    assert calls[0] == "setup"
    assert status != 0
