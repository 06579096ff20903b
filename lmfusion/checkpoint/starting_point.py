"""Find the checkpoint from which a training run starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lmfusion.errors import InputError

LAST, FINETUNE = "checkpoint_last.pt", "--finetune-from-model"


def starts_from(options: Any, suffix: str = "") -> Path | None:
    """Return the path of the checkpoint that fairseq-train is about to load; None if it starts from scratch.

    Args:
        options: fairseq's configuration of checkpoints.
        suffix: of the file names of this process, where each process writes its own checkpoints.

    Raises:
        InputError: if a checkpoint that was asked for does not exist; fairseq would train from random weights.
    """
    found = _asked_for(options, suffix)
    return None if found is None else found[1]


def finetunes_from(options: Any, suffix: str = "") -> Path | None:
    """Return the path of ``--finetune-from-model`` where fairseq-train is about to load it; None otherwise.

    Args:
        options: see :func:`starts_from`.
        suffix: see :func:`starts_from`.

    Raises:
        InputError: if it does not exist.
    """
    found = _asked_for(options, suffix)
    return found[1] if found is not None and found[0] == FINETUNE else None


def _asked_for(options: Any, suffix: str) -> tuple[str, Path] | None:
    """Return the checkpoint to be loaded and the flag that names it; a run's own has that of its folder."""
    last = Path(options.save_dir) / LAST.replace(".pt", f"{suffix}.pt")
    if options.restore_file != LAST:
        flag, path = "--restore-file", Path(options.restore_file.replace(".pt", f"{suffix}.pt"))
    elif last.is_file():
        return "--save-dir", last
    elif options.continue_once is not None:
        flag, path = "--continue-once", Path(options.continue_once)
    elif options.finetune_from_model is not None:
        flag, path = FINETUNE, Path(options.finetune_from_model)
    else:
        return None
    if not path.is_file():
        what = "is a folder" if path.is_dir() else "does not exist"
        raise InputError(f"{flag} {path} {what}: give the path of a checkpoint file, or leave {flag} out.")
    return flag, path
