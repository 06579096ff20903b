"""What decides a run besides the budget: the numbers of the recipes' scripts, and the shipped language models."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from lmfusion.report.provenance import hash_file
from study.budget import SHIPPED, Budget
from study.layout import LM_FILES
from study.results import ROOT
from study.task import Task

_NUMBER = re.compile(r'"\$\{([A-Z][A-Z0-9_]*):=([^}]*)\}"')
_SET_BY_THE_STUDY = {"SEED", "BITEXT_LINES", "ELMO_DROPOUT", "FT_DROPOUT"} | {
    f"S2S_{name}" for name in ("UPDATES", "DROPOUT", "LR", "VALIDATE_EVERY", "PATIENCE")
}


def defaults(task: Task) -> dict[str, str]:
    """The numbers of the scripts that a row of this task reads; as in a shell, the first to set a number keeps it."""
    files = [ROOT / task.recipe / "_corpus.sh", ROOT / "recipes" / "_common.sh", ROOT / "recipes" / "_rows.sh"]
    found: dict[str, str] = {}
    for path in files:
        for name, value in _NUMBER.findall(path.read_text(encoding="utf-8")):
            found.setdefault(name, value)
    return found


def overridden(task: Task) -> list[str]:
    """The recipes' numbers that are set in the environment, which committed results were not made with."""
    return sorted({*defaults(task), "CORPUS", "PRETRAINED"} & os.environ.keys())


def numbers(task: Task, budget: Budget) -> Mapping[str, str]:
    """What has to be the same in all runs of a study, besides the budget's numbers: those of the scripts, and which
    language models these are (the beginning of each file's SHA-256)."""
    shipped = budget.language_models == SHIPPED
    found = {
        name: os.environ.get(name, value)
        for name, value in defaults(task).items()
        # With the shipped language models nothing reads the numbers by which others are pretrained.
        if name not in _SET_BY_THE_STUDY and not (shipped and name.startswith("LM_"))
    }
    folder = Path(os.environ.get("PRETRAINED", ROOT / "pretrained"))
    if shipped:
        for name in LM_FILES.values():
            if (folder / name).is_file():
                found[name] = hash_file(folder / name)[:16]
    return found
