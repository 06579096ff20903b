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

from lmfusion.checkpoint.atomic_files import UNFINISHED
from lmfusion.errors import UserError
from lmfusion.fairseq_patches import early_stop, resuming

COUNTS = {"best": 3.0, "num_runs": 5}


def extra_state(self: Any, path: str, *_: Any, **__: Any) -> Any:
    """What fairseq's trainer gives back of a checkpoint."""
    return torch.load(path, weights_only=True)["extra_state"] if Path(path).is_file() else None


class Trainer:
    """fairseq's, as far as reading a checkpoint goes."""

    updates = 0
    checkpoint_suffix = ""
    data_parallel_rank = 0
    load_checkpoint = resuming.from_whole_checkpoint(extra_state)

    def __init__(self, **options: Any) -> None:
        self.cfg = SimpleNamespace(
            optimization=SimpleNamespace(max_update=70), checkpoint=CheckpointConfig(**options)
        )

    def get_train_iterator(self, **_: Any) -> Any:
        return SimpleNamespace(epoch=1, load_state_dict=lambda state: None)

    def get_num_updates(self) -> int:
        return self.updates

    def set_num_updates(self, updates: int) -> None:
        self.updates = updates

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
    content = {"model": {}, "extra_state": state, "last_optimizer_state": {"state": {}}}
    torch.save(content, tmp_path / "ended" / "checkpoint_last.pt")
    return tmp_path / "ended"


def start(**options: Any) -> Trainer:
    trainer = Trainer(**options)
    checkpoint_utils.load_checkpoint(trainer.cfg.checkpoint, trainer)
    return trainer


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


@pytest.mark.parametrize("updates", [60, 70])
def test_a_checkpoint_without_optimizer_is_none_to_go_on_from_unless_the_run_is_finished(
    ended: Path, updates: int
) -> None:
    path = ended / "checkpoint_last.pt"
    content = torch.load(path, weights_only=True)
    history = [{"num_updates": updates}]
    torch.save({**content, "last_optimizer_state": None, "optimizer_history": history}, path)
    if updates == 70:
        assert start(save_dir=str(ended)).get_num_updates() == 70
    else:
        with pytest.raises(UserError, match=rf"{path} has no optimizer state .* go on from its 60 updates"):
            start(save_dir=str(ended))
        start(save_dir=str(ended), reset_optimizer=True)


def test_a_damaged_last_checkpoint_is_replaced_and_one_named_by_the_user_is_not(ended: Path) -> None:
    last, other = ended / "checkpoint_last.pt", ended / "checkpoint_1_40.pt"
    other.write_bytes(last.read_bytes())
    last.write_bytes(last.read_bytes()[:-300])
    (ended / f"checkpoint_2_50.pt{UNFINISHED}").touch()
    start(save_dir=str(ended))
    assert early_stop.counts() == COUNTS
    assert not list(ended.glob(f"*{UNFINISHED}"))
    with pytest.raises(UserError, match=r"checkpoint_last\.pt"):
        start(save_dir=str(ended.parent / "new"), restore_file=str(last))
