"""A damaged last checkpoint: what is used instead, and what is said."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.fallback import starts_from, warn_of_beginning_anew, whole_checkpoint
from lmfusion.checkpoint.files import updates_in
from lmfusion.errors import UserError


def save(path: Path, updates: int, optimizer: Any = "its state", **saving: Any) -> Path:
    """A checkpoint of a run that was resumed after its first update."""
    history = [{"num_updates": 1, "lr_scheduler_state": {"best": None}}, {"num_updates": updates}]
    model = {f"layer.{number}": torch.full((300,), float(updates)) for number in range(9)}
    meters = {"default": [(0, "num_updates", "AverageMeter", {"val": 7})]}
    content = {"model": model, "optimizer_history": history, "extra_state": {"metrics": meters}}
    torch.save({**content, "last_optimizer_state": optimizer}, path, **saving)
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder with checkpoints of updates 200, 400 and (the last) 70,500, and a best one of 400."""
    save(tmp_path / "checkpoint_1_200.pt", 200)
    save(tmp_path / "checkpoint_2_400.pt", 400)
    save(tmp_path / "checkpoint_best.pt", 400)
    save(tmp_path / "checkpoint_last.pt", 70_500)
    return tmp_path


def cut(path: Path, part: float = 0.6) -> None:
    path.write_bytes(path.read_bytes()[: int(part * path.stat().st_size)])


def flip_a_weight(path: Path) -> None:
    content = bytearray(path.read_bytes())
    place = content.find(torch.load(path, weights_only=True)["model"]["layer.4"].numpy().tobytes())
    assert place > 0
    content[place + 600] ^= 4
    path.write_bytes(content)


def test_a_whole_one_is_taken(run: Path) -> None:
    assert whole_checkpoint(run / "checkpoint_last.pt").name == "checkpoint_last.pt"


@pytest.mark.parametrize("damage", [cut, flip_a_weight])
def test_a_damaged_one_is_replaced_by_the_newest_that_is_whole(
    run: Path, damage: Any, caplog: pytest.LogCaptureFixture
) -> None:
    damage(run / "checkpoint_last.pt")
    cut(run / "checkpoint_best.pt")
    with caplog.at_level(logging.WARNING):
        assert whole_checkpoint(run / "checkpoint_last.pt").name == "checkpoint_2_400.pt"
    assert "DAMAGED CHECKPOINT: " in caplog.text
    assert f"{run / 'checkpoint_last.pt'} cannot be read as a checkpoint" in caplog.text
    assert f"goes on from {run / 'checkpoint_2_400.pt'} instead, of update 400; 70,100 updates are lost" in caplog.text
    cut(run / "checkpoint_2_400.pt")
    cut(run / "checkpoint_last.pt")  # another content: looked at anew
    assert whole_checkpoint(run / "checkpoint_last.pt").name == "checkpoint_1_200.pt"


def test_updates_that_cannot_be_known_are_not_invented(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    (run / "checkpoint_last.pt").write_bytes(b"")
    with caplog.at_level(logging.WARNING):
        assert whole_checkpoint(run / "checkpoint_last.pt").name in ("checkpoint_best.pt", "checkpoint_2_400.pt")
    assert "of update 400; what was trained after it is trained again" in caplog.text


def test_an_averaged_one_is_none_to_go_on_from(run: Path) -> None:
    """Training would begin at update 0, with the weights of the last."""
    cut(run / "checkpoint_last.pt")
    cut(run / "checkpoint_best.pt")
    save(run / "checkpoint_average.pt", 70_500, optimizer=None)
    assert whole_checkpoint(run / "checkpoint_last.pt").name == "checkpoint_2_400.pt"


def test_none_is_whole(run: Path) -> None:
    for path in run.iterdir():
        cut(path)
    with pytest.raises(UserError, match=r"last\.pt cannot be read .* None of the 3 other checkpoints there is whole"):
        whole_checkpoint(run / "checkpoint_last.pt")


def test_one_that_was_asked_for_by_name_is_not_replaced(run: Path) -> None:
    cut(run / "checkpoint_2_400.pt")
    with pytest.raises(UserError, match=r"checkpoint_2_400\.pt cannot be read as a checkpoint"):
        whole_checkpoint(run / "checkpoint_2_400.pt")


def test_number_of_updates_of_a_cut_file(tmp_path: Path) -> None:
    """The last of the optimizer's history counts, and no meter of that name."""
    path = save(tmp_path / "checkpoint_last.pt", 70_500)
    assert updates_in(path) == 70_500
    cut(path, 0.5)
    assert updates_in(path) == 70_500
    path.write_bytes(b"no checkpoint")
    assert updates_in(path) is None


def test_checkpoints_that_are_not_gone_on_from_are_named(run: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A run killed between its first checkpoint and the copy of it begins anew."""
    (run / "checkpoint_last.pt").unlink()
    (run / "checkpoint_best.pt").unlink()
    warn_of_beginning_anew(run / "checkpoint_last.pt")
    assert f"TRAINING BEGINS ANEW: there is no {run / 'checkpoint_last.pt'}" in caplog.text
    assert f"of update 400. To go on from it end this run, and copy {run / 'checkpoint_2_400.pt'} to" in caplog.text


def test_a_new_run_is_not_warned(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    warn_of_beginning_anew(tmp_path / "checkpoint_last.pt")
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("options", "suffix", "expected"),
    [
        ({}, "", ("run/checkpoint_last.pt", True)),
        ({"finetune_from_model": "other.pt"}, "", ("run/checkpoint_last.pt", True)),  # started again
        ({"save_dir": "new"}, "", (None, False)),
        ({"save_dir": "new", "finetune_from_model": "other.pt"}, "", ("other.pt", False)),
        ({"save_dir": "new", "continue_once": "other.pt"}, "", ("other.pt", True)),
        ({"restore_file": "other.pt"}, "", ("other.pt", True)),  # of the working directory
        ({}, "-shard1", ("run/checkpoint_last-shard1.pt", True)),
    ],
)
def test_where_a_run_starts_is_what_fairseq_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, suffix: str, expected: tuple[str | None, bool]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    for name in ("other.pt", "run/checkpoint_last.pt", "run/checkpoint_best.pt", "run/checkpoint_last-shard1.pt"):
        Path(name).touch()
    defaults = {"restore_file": "checkpoint_last.pt", "save_dir": "run", "finetune_from_model": None}
    path, goes_on = starts_from(SimpleNamespace(**{**defaults, "continue_once": None, **options}), suffix)
    assert (None if path is None else str(path), goes_on) == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"finetune_from_model": "absent.pt"}, "--finetune-from-model absent.pt does not exist"),
        ({"finetune_from_model": "run"}, "--finetune-from-model run is a folder"),
        ({"restore_file": "nowhere.pt"}, "--restore-file nowhere.pt does not exist"),
        ({"restore_file": "run"}, "--restore-file run is a folder"),
        ({"restore_file": "checkpoint_best.pt"}, "--restore-file checkpoint_best.pt does not exist"),  # of --save-dir
        ({"continue_once": "nowhere.pt"}, "--continue-once nowhere.pt does not exist"),
    ],
)
def test_a_checkpoint_that_is_asked_for_and_not_there_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: Any, named: str
) -> None:
    """fairseq trains from random weights instead."""
    monkeypatch.chdir(tmp_path)
    Path("run").mkdir()
    Path("run/checkpoint_best.pt").touch()
    defaults = {"restore_file": "checkpoint_last.pt", "save_dir": "run", "finetune_from_model": None}
    with pytest.raises(UserError, match=named):
        starts_from(SimpleNamespace(**{**defaults, "continue_once": None, **options}))
