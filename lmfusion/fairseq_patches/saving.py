"""How fairseq writes its checkpoints: whole or not at all, copies too, with what a run needs to resume."""

from __future__ import annotations

import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any, Callable

import torch
from fairseq.file_io import PathManager

from lmfusion.checkpoint import frozen_file
from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.checkpoint.plain_values import with_plain_values
from lmfusion.checkpoint.reading import read_file
from lmfusion.fairseq_patches import early_stop, text_kit
from lmfusion.fusion.config import frozen_lms


def save_whole(original: Callable[..., Any]) -> Callable[..., Any]:
    """Make ``torch_persistent_save`` write by :func:`save`."""

    def torch_persistent_save(obj: Any, filename: str, async_write: bool = False) -> Any:
        if async_write or not PathManager.supports_rename(filename):
            return original(obj, filename, async_write=async_write)
        return save(obj, Path(filename))

    return torch_persistent_save


def copy_whole(original: staticmethod[..., Any]) -> staticmethod[..., Any]:
    """Make ``PathManager.copy`` put a file into place when the copy is whole."""

    def copy(src_path: str, dst_path: str, overwrite: bool = False) -> Any:
        if PathManager.path_requires_pathmanager(src_path) or PathManager.path_requires_pathmanager(dst_path):
            return original.__func__(src_path, dst_path, overwrite=overwrite)
        with replacing(dst_path) as stream, open(src_path, "rb") as file:
            shutil.copyfileobj(file, stream)
        return True

    return staticmethod(copy)


def save(state: dict[str, Any], path: Path) -> None:
    """Write a checkpoint of a training run.

    Args:
        state: what fairseq's trainer saves.
        path: of the file. With ``--store-lm-once`` a frozen language model goes into a file of its own beside it.

    Raises:
        InputError: if it cannot be written.
    """
    counts = early_stop.counts()
    if counts is not None and isinstance(state.get("extra_state"), dict):
        state["extra_state"][early_stop.KEY] = counts
    model = (state.get("cfg") or {}).get("model") or {}
    if prefixes := frozen_lms(vars(model) if isinstance(model, Namespace) else model):
        state = frozen_file.externalize(state, prefixes, path.parent, read=read_file)
    text_kit.add(state)
    with replacing(path) as stream:
        torch.save(with_plain_values(state), stream)
