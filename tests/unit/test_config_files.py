"""The package's files for fairseq-hydra-train: what follows from their values."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.optim import build_optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from omegaconf import OmegaConf

import lmfusion

CONFIG = Path(lmfusion.USER_DIR) / "config"


def rates(name: str, updates: int, at: list[int]) -> list[float]:
    """The learning rates of a file's schedule after these updates, in a training of so many."""
    file: Any = OmegaConf.load(CONFIG / f"{name}.yaml")
    given = {"lr": file.optimization.lr}
    optimizer = build_optimizer(OmegaConf.merge(given, file.optimizer), [torch.nn.Parameter(torch.zeros(1))])
    scheduler = build_lr_scheduler(OmegaConf.merge(given, {"max_update": updates}, file.lr_scheduler), optimizer)
    return [scheduler.step_update(number) for number in at]


@pytest.mark.parametrize("updates", [20_000, 100_000, 984_000])
def test_the_cosine_of_pretraining_ends_with_the_training_however_long_it_is(updates: int) -> None:
    peak, middle, last = rates("pretrain", updates, [16_000, (16_000 + updates) // 2, updates - 1])
    assert (peak, last) == (pytest.approx(1.0), pytest.approx(1e-4, abs=1e-6))
    assert middle == pytest.approx((1 + 1e-4) / 2)
