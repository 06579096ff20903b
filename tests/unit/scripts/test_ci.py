"""What the README tells a newcomer to run is what continuous integration runs."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = sorted([*(ROOT / "scripts").glob("*.sh"), *(ROOT / "recipes").rglob("*.sh"), ROOT / ".ci" / "run"])


def commands(text: str) -> list[str]:
    """Lines that run one of our scripts, without comments and options."""
    return re.findall(r"^bash (?:recipes|scripts)/\S+\.sh", text, flags=re.MULTILINE)


def test_ci_runs_the_two_commands_of_the_readme_in_their_order() -> None:
    promised = commands((ROOT / "README.md").read_text(encoding="utf-8"))[:2]
    assert promised == ["bash recipes/quickstart.sh", "bash scripts/test.sh"]
    assert commands((ROOT / ".ci" / "run").read_text(encoding="utf-8")) == promised


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_scripts_parse_and_stop_at_the_first_failure(script: Path) -> None:
    subprocess.run(["bash", "-n", script], check=True)
    if not script.name.startswith("_"):  # those are read by others
        assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def test_every_command_has_its_script() -> None:
    assert {"setup.sh", "test.sh", "lint.sh", "quickstart.sh", "run"} <= {script.name for script in SCRIPTS}
