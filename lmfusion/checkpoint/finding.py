"""Find the checkpoint of a run's folder, and what a person meant who gave the folder above the one that is read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lmfusion.errors import InputError

CHECKPOINTS = ("checkpoint_best.pt", "checkpoint_last.pt")
MOST_NAMED = 8
"""Folders in a message."""


def find_checkpoint(
    path: Path, suits: Callable[[Path], bool] = Path.is_file, *, otherwise: str = "the path of a checkpoint"
) -> Path:
    """Return the path of the best checkpoint of a run's folder, or of its last one; a file's own path.

    Args:
        path: a folder or file.
        suits: whether a checkpoint in a folder of runs is of the kind that is wanted; others are not named.
        otherwise: what to give where a folder holds none, for the message.

    Raises:
        InputError: if a folder holds neither; the message names the folders in it that do.
    """
    if not path.is_dir():
        return path
    if found := checkpoint_of(path):
        return found
    inner = {folder: checkpoint_of(folder) for folder in sorted(path.iterdir()) if folder.is_dir()}
    runs = [folder for folder, found in inner.items() if found and suits(found)]
    raise InputError(f"{path} holds neither {' nor '.join(CHECKPOINTS)}: give {instead(runs, otherwise)}.")


def checkpoint_of(folder: Path) -> Path | None:
    """Return the best checkpoint in a run's folder, or its last one; None where it has neither."""
    places = (inner / name for inner in (folder, folder / "checkpoints") for name in CHECKPOINTS)
    return next((place for place in places if place.is_file()), None)


def folders_with(folder: Path, pattern: str) -> list[Path]:
    """Return the folders in a folder that hold a file by a pattern."""
    found = sorted(inner for inner in folder.iterdir() if inner.is_dir()) if folder.is_dir() else []
    return [inner for inner in found if any(inner.glob(pattern))]


def instead(folders: list[Path], otherwise: str) -> str:
    """Return the end of "give …": one of these folders, or what else where there is none."""
    more = f" (and {len(folders) - MOST_NAMED} more)" if len(folders) > MOST_NAMED else ""
    return " or ".join(map(str, folders[:MOST_NAMED])) + more if folders else otherwise
