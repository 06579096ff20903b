"""The run folders that a person named, and what to call them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.report.page.notices import Notices
from lmfusion.runs.run_folder import RUN_FILE


@dataclass(frozen=True)
class Found:
    """A run folder, its name in the report, and the row it was put into by hand, if it was."""

    path: Path
    name: str
    row: str | None = None


def find_runs(words: Sequence[str], notices: Notices) -> list[Found]:
    """Run folders named as ``FOLDER``, or ``ROW=FOLDER`` to choose the row; a folder of run folders stands for these.

    What is no run folder is noted, not an error: the others are still worth a report.
    """
    paths: dict[Path, str | None] = {}
    for word in words:
        row, folder = _split(word)
        inside = _run_folders(folder)
        if not inside:
            notices.bad_input(_explain_nothing(folder))
        for path in inside:
            paths[path] = row or paths.get(path)
    names = _names(list(paths))
    return [Found(path, names[path], row) for path, row in paths.items()]


def _split(word: str) -> tuple[str | None, Path]:
    """Split ``ROW=FOLDER``, unless a folder is called like that as a whole."""
    row, separator, folder = word.partition("=")
    if not separator or "/" in row or Path(word).exists():
        return None, Path(word)
    if not row or not folder:
        raise InputError(f"{word}: give a run folder, or ROW=FOLDER with both parts.")
    return row, Path(folder)


def _run_folders(folder: Path, above: frozenset[Path] = frozenset()) -> list[Path]:
    """Return the folder itself if it is a run's; else those in it. Of a link to a folder above it, none."""
    if (folder / RUN_FILE).exists() or (folder / "train.log").exists():
        return [folder]
    place = folder.resolve()
    if not folder.is_dir() or place in above:
        return []
    inside = sorted(path for path in folder.iterdir() if path.is_dir() and not path.name.startswith("."))
    return [found for path in inside for found in _run_folders(path, above | {place})]


def _explain_nothing(folder: Path) -> str:
    if not folder.exists():
        return f"{folder}: there is no such folder. Check the path."
    if not folder.is_dir():
        return f"{folder}: is a file, not a run folder. Name the folder that holds {RUN_FILE}."
    return f"{folder}: no run folder (there is no {RUN_FILE} in it or below it). Was its run ever started?"


def _names(paths: list[Path]) -> dict[Path, str]:
    """Return the shortest ends of the paths that tell all of them apart."""
    parts = {path: path.resolve().parts for path in paths}
    for length in range(1, max(map(len, parts.values()), default=0) + 1):
        names = {path: "/".join(parts[path][-length:]) for path in paths}
        if len(set(names.values())) == len(paths):
            return names
    return {path: str(path) for path in paths}
