"""The page of tables and figures, from committed runs and from this study's own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from lmfusion.runs.run_folder import RUN_FILE
from study.layout import Layout, Setting
from study.plan import FINAL, LM, Job
from study.results import Results
from study.task import corpus_folder, read_lines


def run_folders(layout: Layout, results: Results, jobs: Sequence[tuple[Job, Setting]]) -> list[Path]:
    """Folders of all runs that were begun for a score, and of language models; a committed one before one's own."""
    found: list[Path] = []
    for job, setting in jobs:
        committed = results.path(job)
        path = committed if committed and results.has(job) else layout.run(job, setting).path
        if job.kind == FINAL and (path / RUN_FILE).is_file():
            found.append(path)
    if any(job.kind == LM for job, _ in jobs):
        found += sorted(path.parent for path in (layout.out / "language-models").glob(f"*/{RUN_FILE}"))
    return found


def write(layout: Layout, folders: Sequence[Path], title: str) -> int:
    """Make the page in OUT/report; the command's exit status."""
    texts = []
    for option, side in zip(("--source", "--reference"), layout.task.sides):
        path = layout.out / "text" / f"test.{side}"
        path.parent.mkdir(parents=True, exist_ok=True)
        prefix = layout.task.train.removesuffix(f"train.{layout.task.sides[0]}")
        lines = read_lines(corpus_folder(), f"{prefix}test.{side}")
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        texts += [option, str(path)]
    command = [sys.executable, "-m", "lmfusion.cli", "report", *map(str, folders), "--out", str(layout.out / "report")]
    command += ["--title", title, "--significance", *texts]
    return subprocess.run(command, check=False).returncode
