"""Translation with the loss of its language model, PCGrad and SMART, through the real commands."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from lmfusion.checkpoint.reading import read_checkpoint

TASK = ("--task", "lmfusion_translation", "--criterion", "translation_tasks", "--arch", "lmfusion_tiny")
TERMS = ("--lm-loss-weight", 0.5, "--gradients", "pcgrad", "--smart-weight", 1, "--smart-epsilon", 0.01)
TERMS += ("--bregman-weight", 1, "--update-freq", 2)


@pytest.mark.slow
def test_it_trains_resumes_and_is_an_ordinary_translation_model(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    """Without the LM's file from the first half on."""
    lm, out = tmp_path / "lm.pt", tmp_path / "run"
    lm.write_bytes(lm_files["src"].read_bytes())
    flags = (*TASK, *TERMS, "--src-fusion", "finetune", "--src-lm", lm, "--log-interval", 1, *commands.text_flags)
    first = commands.ok(*commands.training(out, 2, *flags))
    logged = re.findall(r'"(src_lm_loss|smart|bregman)": "([\d.e-]+)"', first)
    assert {name for name, _ in logged} == {"src_lm_loss", "smart", "bregman"}
    assert next(float(value) for name, value in logged if name == "bregman") == 0.0
    lm.unlink()
    again = commands.ok(*commands.training(out, 4, *flags))
    assert '"valid_num_updates": "4"' in again
    checkpoint = out / "checkpoint_last.pt"
    assert "ema" in read_checkpoint(checkpoint)["extra_state"]
    made = commands.ok(*commands.generation(checkpoint))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    translated = commands.run("lmfusion", "translate", checkpoint, commands.prepared / "text" / "test.en")
    assert translated.status == 0, translated.output[-2000:]


def test_a_frozen_language_model_is_refused(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    flags = (*TASK, "--smart-weight", 1, "--src-fusion", "elmo", "--src-lm", lm_files["src"])
    assert "--src-fusion finetune" in commands.refused(*commands.training(tmp_path, 1, *flags))
    assert not list(tmp_path.glob("*.pt"))
