"""The rules, by Snakemake itself: what it would run, and a study of scripts that only pretend to train."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[4]
pytest.importorskip("snakemake", reason="the extra `study` is not installed")


def study(folder: Path, *words: str, **further: str) -> subprocess.CompletedProcess[str]:
    """The command in a folder that stands for the repository."""
    paths = f"{ROOT}{os.pathsep}{ROOT / 'recipes'}"
    command = [sys.executable, "-m", "study", "debian_ende", *words, "--cores", "1"]
    env = {**os.environ, "PYTHONPATH": paths, **further}
    return subprocess.run(command, cwd=folder, env=env, stdout=-1, stderr=subprocess.STDOUT, text=True, check=False)


def counts(shown: str) -> dict[str, int]:
    """How many jobs of each rule a dry run shows."""
    found = re.findall(r"(?m)^(\w+) +(\d+)$", shown.split("Job stats:")[1])
    return {rule: int(number) for rule, number in found}


@pytest.mark.slow
def test_a_dry_run_shows_the_protocols_jobs_and_writes_nothing(tmp_path: Path) -> None:
    # Without the committed results: what is in them is not run again, and there will be more of them.
    shutil.copytree(ROOT / "recipes", tmp_path / "recipes", ignore=shutil.ignore_patterns("results", "__pycache__"))
    (tmp_path / "data-prep").symlink_to(ROOT / "data-prep")
    shown = study(tmp_path, "--budget", "protocol", "--out", "out", "--dry-run").stdout
    # Eleven rows of five configurations, four that take another's; of fifteen nine have two more seeds. Rows with
    # back-translation wait for one model of the other direction, which is not scored.
    assert counts(shown) == {
        "data": 1,
        "tune": 11 * 5,
        "choose": 15 + 1,
        "train": 15 + 9 * 2 + 1,
        "translate_and_score": 33,
        "all": 1,
        "total": 140,
    }
    assert not (tmp_path / "out").exists()
    words = ("--budget", "gpu", "--rows", "src_ft_bilm", "src_elmo_bilm", "src_ft", "--sizes", "10000", "5000")
    shown = study(tmp_path, *words, "--out", "out", "--dry-run").stdout
    # The two are trained at 10,000 pairs alone, with one language model, by what src_elmo and src_ft have chosen there.
    assert counts(shown) == {
        "data": 2,
        "language_model": 1,
        "tune": 2 * 5 + 2,
        "choose": 5,
        "train": 4,
        "translate_and_score": 4,
        "all": 1,
        "total": 29,
    }


@pytest.mark.slow
def test_a_search_chooses_by_validation_and_scores_only_what_is_chosen(workplace: Any) -> None:
    workplace.set_losses({"src_elmo 8000 0.3 0.0": 3.0, "src_elmo 8000 0.4 0.0": 2.0})
    words = ("--budget", "protocol", "--sizes", "10000", "--rows", "src_elmo", "--seeds", "1", "--out", "out")
    done = study(workplace.folder, *words)
    assert done.returncode == 0, done.stdout
    tried = [call for call in workplace.calls() if call.endswith(" 1")]
    assert [call.split()[3:6] for call in sorted(set(tried))].count(["8000", "0.4", "0.0"]) == 1
    assert [call for call in workplace.calls() if call.endswith("scored")] == [
        "10000 src_elmo 1 8000 0.4 0.0 0.003 scored",
    ]
    (choice,) = json.loads((workplace.folder / "out" / "choices.json").read_text(encoding="utf-8"))
    assert (choice["dropout"], choice["updates"], len(choice["bits_per_character"])) == (0.4, 8000, 5)
    # 3 validation lines of 8 characters and 3 symbols with the sentence's end: 2 bits a symbol.
    assert min(choice["bits_per_character"].values()) == pytest.approx(2.0 * 9 / 24)

    calls = workplace.calls()
    assert study(workplace.folder, *words).returncode == 0
    assert workplace.calls() == calls, "nothing is run twice"


@pytest.mark.slow
def test_a_failed_row_does_not_stop_others_and_the_same_command_resumes_it(workplace: Any) -> None:
    words = ("--sizes", "10", "--rows", "baseline", "src_elmo", "--seeds", "1", "--out", "out", "--add-results")
    failed = study(workplace.folder, *words, FAIL="baseline")
    assert failed.returncode == 1
    assert "jobs failed" in failed.stdout
    assert any("src_elmo" in call and call.endswith("scored") for call in workplace.calls())
    before = len(workplace.calls())
    assert study(workplace.folder, *words).returncode == 0
    assert all("baseline" in call for call in workplace.calls()[before:])

    results = workplace.folder / "recipes" / "debian_ende" / "results" / "cpu"
    assert len(list(results.glob("bitext-10/*/seed-1/scores.json"))) == 2
    calls = workplace.calls()
    assert study(workplace.folder, *words[:-2], "elsewhere").returncode == 0
    assert workplace.calls() == calls, "what is committed is not run again"
