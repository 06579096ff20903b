"""What a run takes over from the checkpoint it starts from."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq import checkpoint_utils
from fairseq.dataclass.configs import CheckpointConfig

import lmfusion  # noqa: F401  what is tested is installed by it
from lmfusion import early_stop

COUNTS = {"best": 3.0, "num_runs": 5}


class Trainer:
    """fairseq's, as far as reading a checkpoint goes."""

    checkpoint_suffix = ""
    data_parallel_rank = 0

    def load_checkpoint(self, path: str, *_: Any, **__: Any) -> Any:
        return torch.load(path, weights_only=True)["extra_state"] if Path(path).is_file() else None

    def get_train_iterator(self, **_: Any) -> Any:
        return SimpleNamespace(epoch=1, load_state_dict=lambda state: None)

    def lr_step(self, epoch: int) -> None:
        pass

    task = None


@pytest.fixture
def ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a run that --patience 5 ended, and a new process of fairseq-train."""
    command = ModuleType("fairseq_cli.train")
    command.should_stop_early = lambda cfg, valid_loss: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairseq_cli.train", command)
    (tmp_path / "ended").mkdir()
    state = {"train_iterator": {"epoch": 3}, early_stop.KEY: COUNTS}
    torch.save({"model": {}, "extra_state": state}, tmp_path / "ended" / "checkpoint_last.pt")
    return tmp_path / "ended"


def start(**options: Any) -> None:
    checkpoint_utils.load_checkpoint(CheckpointConfig(**options), Trainer())


def test_a_run_that_goes_on_counts_on(ended: Path) -> None:
    start(save_dir=str(ended))
    assert early_stop.counts() == COUNTS


def test_a_model_that_is_fine_tuned_brings_no_counts(ended: Path, tmp_path: Path) -> None:
    """They are of other data: with them its training could end before it begins."""
    start(save_dir=str(tmp_path / "new"), finetune_from_model=str(ended / "checkpoint_last.pt"))
    assert early_stop.counts() is None


def test_counts_are_reset_with_the_optimizer(ended: Path) -> None:
    start(save_dir=str(ended), reset_optimizer=True)
    assert early_stop.counts() is None
