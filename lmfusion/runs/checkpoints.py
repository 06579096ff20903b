"""fairseq's checkpoint files of a run folder."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

from lmfusion.checkpoint.atomic_files import replacing

LAST, BEST = "checkpoint_last.pt", "checkpoint_best.pt"


def is_whole(path: Path) -> bool:
    """Tell whether a checkpoint file was written to its end (it is a zip archive, whose directory comes last)."""
    return path.is_file() and zipfile.is_zipfile(path)


def make_last(folder: Path) -> Path | None:
    """Make checkpoint_last.pt from the newest whole checkpoint, if a run was killed before its first copy of one.

    One that is there and damaged is left to the training, which refuses it.

    Returns:
        The checkpoint it was made from; None if nothing had to be done or nothing could be.
    """
    last = folder / LAST
    if last.exists():
        return None
    others = [path for path in folder.glob("checkpoint_*.pt") if path.name not in (LAST, BEST) and is_whole(path)]
    if not others:
        return None
    newest = max(others, key=lambda path: path.stat().st_mtime)
    with newest.open("rb") as source, replacing(last) as copy:
        shutil.copyfileobj(source, copy)
    return newest
