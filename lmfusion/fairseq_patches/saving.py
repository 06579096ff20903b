"""How fairseq writes its checkpoints, made safe: whole or not at all, copies too; one line when the disk is full.

fairseq renames a checkpoint of which nothing need have reached the disk, copies onto ``checkpoint_best.pt`` and
``checkpoint_last.pt`` in place (a kill in between leaves neither the old nor the new one), and answers a full disk with
tracebacks and a half-written file.
"""

from __future__ import annotations

import errno
import logging
import shutil
import time
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable

import torch
from fairseq import checkpoint_utils

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.atomic_files import CannotWriteError, replacing
from lmfusion.checkpoint.reading import read_file
from lmfusion.errors import UserError
from lmfusion.fairseq_patches import early_stop
from lmfusion.fusion.config import frozen_lms

logger = logging.getLogger(__name__)

_PASSING = (errno.EIO, errno.ESTALE, errno.EAGAIN, errno.ETIMEDOUT, errno.EBUSY)
"""Errors of network file systems that may be over in a moment."""
_PAUSES = (2.0, 10.0, 30.0)  # seconds
_COPIED_AT_ONCE = 1 << 24  # bytes


def install() -> None:
    """Make fairseq write so; safe to call again."""
    if getattr(checkpoint_utils.torch_persistent_save, "is_atomic", False):
        return
    original: Callable[..., Any] = checkpoint_utils.torch_persistent_save

    def torch_persistent_save(obj: Any, filename: str, async_write: bool = False) -> Any:
        """fairseq's, whole or not at all."""
        if async_write or not checkpoint_utils.PathManager.supports_rename(filename):
            return original(obj, filename, async_write=async_write)
        return save(obj, Path(filename))

    torch_persistent_save.is_atomic = True  # type: ignore[attr-defined]
    checkpoint_utils.torch_persistent_save = torch_persistent_save
    checkpoint_utils.PathManager = _with_whole_copies(checkpoint_utils.PathManager)


def _with_whole_copies(manager: Any) -> Any:
    class WholeCopies(manager):
        """fairseq's, whose copies appear when they are whole."""

        @staticmethod
        def copy(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
            """Copy a checkpoint."""
            if manager.path_requires_pathmanager(src_path) or manager.path_requires_pathmanager(dst_path):
                return manager.copy(src_path, dst_path, overwrite=overwrite)
            _write(Path(dst_path), lambda stream: _copy(Path(src_path), stream))
            return True

    return WholeCopies


def _copy(source: Path, stream: Any) -> None:
    with source.open("rb") as file:
        shutil.copyfileobj(file, stream, _COPIED_AT_ONCE)


def save(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint of a training run.

    Args:
        state: what fairseq's trainer saves.
        path: of the file. With ``--store-lm-once`` a frozen language model goes into a file of its own beside it.

    Raises:
        UserError: if it cannot be written.
    """
    counts = early_stop.counts()
    if counts is not None and isinstance(state.get("extra_state"), dict):
        state["extra_state"][early_stop.KEY] = counts
    model = (state.get("cfg") or {}).get("model") or {}
    if prefixes := frozen_lms(vars(model) if isinstance(model, Namespace) else model):
        state = frozen_file.take_out(state, prefixes, path.parent, read=read_file)
    _write(path, lambda stream: torch.save(state, stream))


def _write(path: Path, write: Callable[[Any], None]) -> None:
    """Write a file, with the patience that network file systems need."""
    for pause in (*_PAUSES, None):
        try:
            with replacing(path) as stream:
                write(stream)
        except CannotWriteError as error:
            if pause is None or error.errno not in _PASSING:
                raise UserError(f"training stops, for {error} {_what_is_left(path.parent)}") from error
            logger.warning(f"{error} Trying again in {pause:g} seconds.")
            time.sleep(pause)
        else:
            return


def _what_is_left(folder: Path) -> str:
    whole = sorted(file.name for file in folder.glob("checkpoint*.pt")) if folder.is_dir() else []
    if not whole:
        return "No checkpoint was written before."
    return (
        f"Checkpoints written before are as they were ({', '.join(whole[-3:])}): the same command goes on from "
        f"the last. --no-epoch-checkpoints, --keep-interval-updates and --store-lm-once take less space."
    )
