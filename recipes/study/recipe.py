"""What decides a run besides the budget: the numbers of the recipes' scripts, and the shipped language models."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping

from lmfusion.runs.provenance import hash_file
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
    further = ("CORPUS", "PRETRAINED", "MORE_TEXT", "LM_PATIENCE", "LM_TOTAL")
    return sorted({*defaults(task), *further} & os.environ.keys())


def numbers(task: Task, budget: Budget) -> Mapping[str, str]:
    """What has to be the same in all runs of a study, besides the budget's numbers: those of the scripts, and which
    language models these are (the beginning of each file's SHA-256)."""
    found = {
        name: os.environ.get(name, value)
        for name, value in defaults(task).items()
        # Those by which language models are pretrained are other ones where a study pretrains its own.
        if name not in _SET_BY_THE_STUDY and not name.startswith("LM_")
    }
    if budget.language_models != SHIPPED:
        return {**found, **_pretraining()}
    folder = ROOT / task.language_models
    for name in LM_FILES.values():
        if (folder / name).is_file():
            found[name] = hash_file(folder / name)[:16]
    return found


def _pretraining() -> dict[str, str]:
    """The numbers of ``recipes/pretrain_longer.sh`` for each kind of language model, as it says them itself."""
    found = {name: os.environ[name] for name in ("MORE_TEXT", "LM_TOTAL") if os.environ.get(name)}
    for kind in LM_FILES:
        command = ["bash", str(ROOT / "recipes" / "pretrain_longer.sh"), kind, "--numbers"]
        said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        pairs = (line.split("=", 1) for line in said.splitlines())
        found |= {f"{kind} {name}": value for name, value in pairs if name != "LM_UPDATES"}  # the budget says it
    return found
