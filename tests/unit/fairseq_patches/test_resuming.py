"""What a run takes over from the checkpoint it starts from."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any, Callable

import pytest
import torch
from fairseq.dataclass.configs import CheckpointConfig
from omegaconf import OmegaConf

from lmfusion.errors import InputError
from lmfusion.fairseq_patches import early_stop
from lmfusion.fairseq_patches.resuming import resume_completely

COUNTS = {"best": 3.0, "num_runs": 4}
UPDATES = 60


class Trainer:
    """fairseq's, as far as reading a checkpoint goes."""

    def __init__(self, max_update: int = 100, patience: int = 5) -> None:
        self.updates = 0
        self._optim_history: list[dict[str, Any]] = []
        self.cfg = OmegaConf.create(
            {
                "optimization": {"max_update": max_update, "max_epoch": 0},
                "checkpoint": {**vars(CheckpointConfig()), "patience": patience, "save_dir": "absent"},
                "distributed_training": {"distributed_no_spawn": True, "distributed_rank": 0},
            }
        )
        self.checkpoint_suffix = ""
        OmegaConf.set_struct(self.cfg, True)

    def get_model(self) -> Any:
        return torch.nn.Identity()

    def get_num_updates(self) -> int:
        return self.updates

    def set_num_updates(self, updates: int) -> None:
        self.updates = updates


def fairseqs(optimizer: bool = True) -> Callable[..., Any]:
    """Load a checkpoint of so many updates, with its optimizer's state or without; fairseq looks no further."""

    def load_checkpoint(self: Trainer, filename: str, reset_optimizer: bool, *_: Any) -> Any:
        self._optim_history = [{"num_updates": 1}, {"num_updates": UPDATES}]
        if optimizer and not reset_optimizer:
            self.updates = UPDATES
        return {"train_iterator": {"epoch": 3}, early_stop.KEY: COUNTS}

    return load_checkpoint


@pytest.fixture(autouse=True)
def command(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process of fairseq-train."""
    module = ModuleType("fairseq_cli.train")
    module.should_stop_early = lambda cfg, valid_loss: False  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairseq_cli.train", module)


def load(trainer: Trainer, optimizer: bool = True, **flags: Any) -> Any:
    return resume_completely(fairseqs(optimizer))(trainer, "ended/checkpoint_last.pt", **flags)


def test_a_run_that_goes_on_counts_on() -> None:
    trainer = Trainer()
    assert load(trainer)["train_iterator"] == {"epoch": 3}
    assert early_stop.counts() == COUNTS
    assert trainer.cfg.optimization.max_epoch == 0


@pytest.mark.parametrize("flag", ["reset_optimizer", "reset_meters"])
def test_counts_are_of_the_optimizer_and_the_meters(flag: str) -> None:
    """With --finetune-from-model fairseq resets both: the counts are of other data."""
    load(Trainer(), **{flag: True})
    assert early_stop.counts() is None


@pytest.mark.parametrize("limits", [{"max_update": UPDATES}, {"patience": 4}])
@pytest.mark.parametrize("optimizer", [True, False])
def test_a_finished_run_makes_no_further_epoch(limits: dict[str, int], optimizer: bool) -> None:
    trainer = Trainer(**limits)
    load(trainer, optimizer)
    assert trainer.updates == UPDATES
    assert not (trainer.cfg.optimization.max_epoch or torch.inf) >= 1  # as fairseq_cli.train.main asks


def test_a_checkpoint_without_optimizer_is_none_to_go_on_from() -> None:
    with pytest.raises(InputError, match=r"checkpoint_last\.pt has no optimizer state .* from its 60 updates"):
        load(Trainer(), optimizer=False)
    load(Trainer(), optimizer=False, reset_optimizer=True)


def test_nothing_is_resumed_where_there_is_no_checkpoint() -> None:
    trainer = Trainer()
    assert resume_completely(lambda *_: None)(trainer, "nowhere.pt") is None
    assert early_stop.counts() is None
