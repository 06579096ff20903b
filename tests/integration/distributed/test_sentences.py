"""Two processes train heads for sentence tasks as one process with --update-freq 2 does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest

import lmfusion

ROWS = {"mood": ["good day\tyes", "bad day\tno"], "time": ["in the morning\tearly", "in the evening\tlate"]}
UPDATES = 6


@pytest.fixture
def tasks(tmp_path: Path) -> str:
    for name, rows in ROWS.items():
        for split, times in (("train", 24), ("valid", 4)):
            (tmp_path / f"{name}-{split}.tsv").write_text("\n".join(["sentence\tlabel", *rows * times, ""]), "utf-8")
    return ":".join(str(tmp_path / name) for name in ROWS)


@pytest.mark.slow
@pytest.mark.parametrize("gradients", ["sum", "pcgrad"])
def test_joint_training(
    commands: Any, run_two: Callable[..., Any], lm_files: dict[str, Path], tasks: str, tmp_path: Path, gradients: str
) -> None:
    words: list[object] = ["fairseq-train", tasks, "--user-dir", lmfusion.USER_DIR, "--cpu", "--no-save", "--seed", 1]
    words += ["--task", "lmfusion_sentences", "--arch", "lmfusion_heads", "--criterion", "sentence_tasks"]
    words += ["--src-fusion", "finetune", "--src-lm", lm_files["src"], "--schedule", "joint", "--gradients", gradients]
    words += ["--optimizer", "adamax", "--lr", 0.001, "--batch-size", 4, "--max-update", UPDATES, "--num-workers", 0]
    words += ["--log-format", "json", "--log-interval", 1, "--head-dropout", 0, *commands.text_flags]
    words += [f"--src-lm-{what}dropout=0" for what in ("", "attention-", "relu-")]
    one = commands.ok(*words, "--save-dir", tmp_path / "one", "--update-freq", 2)
    two = run_two(*words, "--save-dir", tmp_path / "two")
    assert [done.status for done in two] == [0, 0], two[0].output[-3000:] + two[1].output[-3000:]
    alone, together = (values(output) for output in (one, two[0].output))
    assert len(alone) == UPDATES
    for before, after in zip(alone, together):
        assert after == pytest.approx(before, abs=0.0021)
    assert alone[-1] != alone[0]


def values(output: str) -> list[list[float]]:
    """Loss and norm of the gradient of every update, as fairseq logged them."""
    lines = [line.split("| train_inner | ", 1)[1] for line in output.splitlines() if "| train_inner | {" in line]
    return [[float(json.loads(line)[name]) for name in ("loss", "gnorm")] for line in lines]
