"""The page of tables and figures, from committed runs and from this study's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmfusion.runs.run_folder import RUN_FILE, RunFolder
from study.layout import run_folder
from study.plan import Cell, Plan


def run_folders(plan: Plan) -> list[Path]:
    """Return folders of language models and of all runs begun for a score; a committed one before one's own."""
    found: list[Path] = []
    for cell in plan.cells():
        if (run := run_of(plan, cell)) and (run.path / RUN_FILE).is_file():
            found.append(run.path)
    folders = (plan.out / "language-models", plan.out / "earlier")
    return found + sorted(path.parent for folder in folders for path in folder.glob(f"*/{RUN_FILE}"))


def run_of(plan: Plan, cell: Cell) -> RunFolder | None:
    """Return where a cell's run lies, a committed one before one's own; None as long as its settings are not chosen."""
    committed = plan.results.path(cell) if plan.results.has(cell) else None
    return RunFolder(committed) if committed else own_run(plan, cell)


def own_run(plan: Plan, cell: Cell) -> RunFolder | None:
    """Return where a cell's run lies in the study's folder; None as long as its settings are not chosen."""
    try:
        return run_folder(plan, cell, plan.setting(cell))
    except FileNotFoundError:  # of the choice
        return None


def write(plan: Plan, folders: Sequence[Path], title: str, further: str, pictures: Mapping[str, str]) -> int:
    """Make the page in OUT/report, of runs if there are any, and end it in Markdown with further sections.

    Args:
        plan: the study.
        folders: of runs.
        title: of the page.
        further: the sections.
        pictures: of the sections, by file name.

    Returns:
        The exit status of ``lmfusion report``.
    """
    if folders and (status := _of_runs(plan, folders, title)):
        return status
    page = plan.out / "report" / "report.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    with page.open("a" if folders else "w", encoding="utf-8") as stream:
        stream.write(further)
    for name, content in pictures.items():
        page.with_name(name).write_text(content, encoding="utf-8")
    if not folders:
        print(f"wrote {page}")
    return 0


def _of_runs(plan: Plan, folders: Sequence[Path], title: str) -> int:
    texts = []
    for option, side in zip(("--source", "--reference"), plan.task.sides):
        path = plan.out / "text" / f"test.{side}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(f"{line}\n" for line in plan.task.lines("test", side)), encoding="utf-8")
        texts += [option, str(path)]
    command = [sys.executable, "-P", "-m", "lmfusion.cli", "report", *map(str, folders)]
    command += ["--out", str(plan.out / "report"), "--title", title, "--significance", *texts]
    return subprocess.run(command, check=False).returncode
