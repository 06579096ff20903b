"""Which checkpoint a run starts from; a damaged last one is replaced by the one before, loudly."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.files import updates_in
from lmfusion.checkpoint.reading import check_checkpoint, read_checkpoint
from lmfusion.errors import UserError

logger = logging.getLogger(__name__)

LAST = "checkpoint_last.pt"


def starts_from(options: Any, suffix: str = "") -> tuple[Path | None, bool]:
    """The checkpoint that fairseq-train is about to read, and whether it goes on with the run that wrote it.

    A model that is fine-tuned (--finetune-from-model) gives its weights alone.

    Args:
        options: fairseq's configuration of checkpoints.
        suffix: of this process's files, where each writes its own.

    Raises:
        UserError: a checkpoint that was asked for is not there; fairseq would train from random weights.
    """
    last = Path(options.save_dir) / LAST.replace(".pt", f"{suffix}.pt")
    if options.restore_file != LAST:
        flag, path = "--restore-file", Path(options.restore_file.replace(".pt", f"{suffix}.pt"))
    elif last.is_file():
        return last, True
    elif options.continue_once is not None:
        flag, path = "--continue-once", Path(options.continue_once)
    elif options.finetune_from_model is not None:
        flag, path = "--finetune-from-model", Path(options.finetune_from_model)
    else:
        return None, False
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise UserError(f"{flag} {path} {what}: give the path of a checkpoint file, or leave {flag} out.")
    return path, flag != "--finetune-from-model"


def whole_checkpoint(path: Path) -> Path:
    """The checkpoint to go on from: ``path``, or if it is damaged, the newest whole one beside it.

    Args:
        path: an existing checkpoint.

    Raises:
        UserError: if it is not ``checkpoint_last.pt`` and damaged, or there is no whole one.
    """
    about = path.stat()
    return _whole(path, about.st_size, about.st_mtime_ns, about.st_ino)


@lru_cache(maxsize=8)
def _whole(path: Path, *_: int) -> Path:
    try:
        check_checkpoint(path)
    except UserError as error:
        if path.name != LAST:
            raise
        return _another(path, str(error))
    return path


def _another(damaged: Path, reason: str) -> Path:
    others = _newest_first(damaged)
    for other in others:
        try:
            check_checkpoint(other)
        except UserError as error:
            logger.warning(f"not usable either: {error}")
            continue
        if not has_optimizer(other):  # averaged or exported: training would begin at update 0
            continue
        logger.warning(f"DAMAGED CHECKPOINT: {reason} Training goes on from {other} instead, {_loss(damaged, other)}.")
        return other
    raise UserError(
        f"{reason} None of the {len(others)} other checkpoints there is whole and has the optimizer's state. Copy one "
        f"from elsewhere, or begin anew in another --save-dir."
    )


def has_optimizer(path: Path) -> bool:
    """Whether training can go on from a whole checkpoint; not from an averaged or exported one."""
    return read_checkpoint(path).get("last_optimizer_state") is not None


def warn_of_beginning_anew(last: Path) -> None:
    """Say loudly that checkpoints are there and will not be used, as after a kill before the first copy of one.

    Args:
        last: the checkpoint to go on from, which does not exist.
    """
    others = _newest_first(last)
    if others:
        logger.warning(
            f"TRAINING BEGINS ANEW: there is no {last}, but other checkpoints are there, the newest of update "
            f"{updates_in(others[0])}. To go on from it end this run, and copy {others[0]} to {last}."
        )


def _newest_first(last: Path) -> list[Path]:
    """The other checkpoints in a folder."""
    others = [file for file in last.parent.glob("checkpoint*.pt") if file.name != last.name]
    return sorted(others, key=lambda file: (updates_in(file) or 0, file.stat().st_mtime), reverse=True)


def _loss(damaged: Path, other: Path) -> str:
    done, left = updates_in(damaged), updates_in(other)
    if done is None or left is None:
        return f"of update {left}; what was trained after it is trained again"
    return f"of update {left:,}; {max(done - left, 0):,} updates are lost and trained again"
