"""Threads that wait give their core away in our commands and in what they start, unless the user said otherwise."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from lmfusion.runs.threads import OF_USERS

ROOT = Path(__file__).resolve().parents[3]
SHOWS = """
import os
print("policy", os.environ.get("OMP_WAIT_POLICY"))
print("now | INFO | Translated 3 sentences (9 tokens) in 1.0s (3.0 sentences/s, 9.0 tokens/s)")
"""


def run(words: list[str], **given: str) -> subprocess.CompletedProcess[str]:
    """Run a module of ours with these variables and no others that say how threads wait."""
    environment = {name: value for name, value in os.environ.items() if name not in OF_USERS}
    return subprocess.run(
        [sys.executable, "-m", *words],
        env={**environment, "PYTHONPATH": str(ROOT), **given},
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, "PASSIVE"),
        ({"OMP_WAIT_POLICY": "ACTIVE"}, "ACTIVE"),
        ({"GOMP_SPINCOUNT": "1000"}, None),
    ],
    ids=["by default", "as the user said", "as the user said in another way"],
)
def test_a_recipes_command_waits_so_and_its_run_folder_says_it(
    tmp_path: Path, given: dict[str, str], expected: str | None
) -> None:
    words = ["lmfusion.runs.live", str(tmp_path), "generate", "--label", "toy", "--sentences", "3"]
    run([*words, "--", sys.executable, "-c", SHOWS], **given)
    assert f"policy {expected}\n" in (tmp_path / "generate.log").read_text()
    recorded = json.loads((tmp_path / "run.json").read_text())["steps"]["generate"]["launch"]["environment"]
    assert recorded.get("OMP_WAIT_POLICY") == expected


@pytest.mark.slow
def test_a_command_that_loads_torch_has_said_it_before(tmp_path: Path, make_causal: object, save_lm: object) -> None:
    checkpoint = save_lm(make_causal())  # type: ignore[operator]
    done = run(["lmfusion.cli", "inspect", str(checkpoint)], OMP_DISPLAY_ENV="true")
    said = [line for line in done.stderr.splitlines() if "OMP_WAIT_POLICY" in line]  # the runtime's own words
    assert said
    assert all("PASSIVE" in line for line in said)
