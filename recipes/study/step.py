"""One job of the rules: run a recipe's script with its settings, then leave a mark.

python -m study.step OUT train baseline 10000 1 MARK
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmfusion.child_processes import die_with_parent
from lmfusion.errors import InputError, exit_status
from lmfusion.runs.live import end_with_parent
from lmfusion.runs.run_folder import FINISHED, RunFolder
from study import command, layout, search
from study.plan import Cell, Plan
from study.results import BLIND
from study.search import Setting, Tried
from study.task import DECODED_ONLY


def script(words: Sequence[str], settings: Mapping[str, str]) -> None:
    """Run a script of recipes/ with settings in its environment.

    Raises:
        InputError: it failed; what it said is above.
    """
    one_thread = {"OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1")}
    status = subprocess.run(
        ["bash", *words], env={**os.environ, **one_thread, **settings}, check=False, preexec_fn=die_with_parent()
    ).returncode
    if status:
        raise InputError(f"bash {' '.join(words)}: exit status {status}. The same command resumes it.")


def prepare(plan: Plan, size: int) -> None:
    """Prepare the text of a size, as every row's script does that sources its folder's _corpus.sh."""
    corpus = plan.task.recipe / "_corpus.sh"
    script(["-c", '. "$0"', str(corpus)], layout.data_settings(plan, size))


def language_model(plan: Plan, kind: str) -> None:
    """Pretrain a language model."""
    name = kind.removeprefix("earlier-")
    words = ["recipes/pretrain_longer.sh", kind, str(plan.out / "language-models")]
    if name != kind:
        words = ["recipes/pretrain_earlier.sh", name, str(layout.earlier_lms(plan))]
    script(words, layout.language_model_settings(plan, kind))


def row(plan: Plan, cell: Cell, setting: Setting, train_only: bool) -> RunFolder:
    """Run a row's script.

    Raises:
        InputError: it did not leave what it is for.
    """
    script([str(plan.task.recipe / f"{cell.row}.sh")], layout.row_settings(plan, cell, setting, train_only))
    run = layout.run_folder(plan, cell, setting)
    trained = cell.row in DECODED_ONLY or run.step("train").get("state") == FINISHED
    if not (trained if train_only else run.scores.get("test")):
        raise InputError(f"{run.path}: the script ended well, but left no {'training' if train_only else 'score'}.")
    return run


def try_one(plan: Plan, cell: Cell, number: int) -> Tried:
    """Train a configuration; the test set is left alone."""
    setting = plan.tried(cell.row, cell.size, number)
    run = row(plan, cell, setting, train_only=True)
    references = plan.task.lines("valid", plan.task.sides[1])
    return Tried(setting, search.bits_per_character(run, references, plan.task.sides))


def translate_blind(plan: Plan, cell: Cell) -> None:
    """Translate the blind test set with a cell's model; nothing is scored here."""
    run = layout.run_folder(plan, cell, plan.setting(cell))
    source = f"{plan.task.blind}.{plan.task.sides[0]}.xz"
    words = '"$0" -m lmfusion.cli translate "$1" "$2" >"$3.partial" && mv "$3.partial" "$3"'
    script(["-c", words, sys.executable, str(run.path), source, str(run.path / BLIND)], {})


def _run(words: list[str]) -> None:
    """Run the job that the words of the command line name; the mark is written last."""
    out, kind, name, size, seed, mark, *number = words
    plan = command.read_plan(Path(out))
    cell = Cell(name, int(size), int(seed))
    text = ""
    if kind == "data":
        prepare(plan, cell.size)
    elif kind == "language-model":
        language_model(plan, name)
    elif kind == "try":
        text = try_one(plan, cell, int(number[0])).to_json()
    elif kind == "choice":
        text = plan.choose(name, cell.size).to_json()
    elif kind == "blind":
        translate_blind(plan, cell)
    else:
        row(plan, cell, plan.setting(cell), train_only=kind == "train")
    partial = Path(f"{mark}.partial")
    partial.parent.mkdir(parents=True, exist_ok=True)
    partial.write_text(text, encoding="utf-8")
    shutil.move(partial, mark)


def main() -> int:
    """Run the job of the command line."""
    end_with_parent()
    return exit_status(lambda: _run(sys.argv[1:]))


if __name__ == "__main__":
    sys.exit(main())
