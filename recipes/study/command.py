"""The command line of a recipe folder's study.sh, and the plan that it asks for."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Sequence
from pathlib import Path

from lmfusion.errors import InputError
from study import budget as budgets
from study import recipe
from study.budget import Budget
from study.plan import Plan, check_rows
from study.results import Results
from study.task import TASKS, Task

WORDS = "command.json"
"""The file in a study's folder that its jobs read the command line from."""


def parse_args(words: Sequence[str]) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(
        prog="study.sh",
        description="Run the paper's table and figure as one study, by Snakemake.",
        epilog="What follows -- goes to Snakemake, e.g. -- --executor slurm. Example: study.sh --budget cpu --cores 2",
    )
    parser.add_argument("task", choices=TASKS, help=argparse.SUPPRESS)
    presets = ", ".join(budgets.PRESETS)
    parser.add_argument(
        *("--budget",),
        nargs="+",
        default=["cpu"],
        metavar="WORD",
        help=f"{presets}, and NAME=VALUE ... to change its numbers (default: cpu)",
    )
    parser.add_argument("--sizes", nargs="+", metavar="N", help="bitext sizes; all: all pairs")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="rows, by the names of their scripts")
    parser.add_argument(
        "--seeds", nargs="+", type=int, metavar="S", help=f"of what is scored; a search has seed {budgets.FIRST_SEED}"
    )
    parser.add_argument("--cores", "--jobs", type=int, metavar="N", help="runs at a time (default: all cores)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the study's folder (default: runs/study/NAME)")
    parser.add_argument("--dry-run", action="store_true", help="show the jobs and why each is to be run")
    parser.add_argument("--report-only", action="store_true", help="run nothing: the report of what there is")
    parser.add_argument("--add-results", action="store_true", help="copy what has finished into the committed results")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="renew this study's tables in a page of Markdown")
    parser.add_argument("--no-stored-states", action="store_true", help="do not keep the frozen LM's states on disk")
    return parser.parse_args(words)


def chosen_budget(args: argparse.Namespace, task: Task) -> Budget:
    """Return the budget with the sizes and seeds that were asked for.

    Raises:
        InputError: a value is none.
    """
    budget = budgets.read(args.budget)
    if args.sizes:
        try:
            budget = dataclasses.replace(budget, sizes=tuple(map(budgets.size, args.sizes)))
        except ValueError as error:
            raise InputError(f"--sizes {' '.join(args.sizes)}: {error}, or: all") from error
    elif task.sizes:
        budget = dataclasses.replace(budget, sizes=task.sizes)
    if args.cores is not None and args.cores < 1:
        raise InputError(f"--cores {args.cores}: give a number above 0")
    return dataclasses.replace(budget, seeds=tuple(args.seeds)) if args.seeds else budget


def is_preset(task: Task, budget: Budget) -> bool:
    """Tell whether a budget is one whose results are committed, with the scripts' own numbers."""
    return budget.name in budgets.PRESETS and not recipe.overridden(task)


def make_plan(args: argparse.Namespace) -> Plan:
    """Return the plan of a command line.

    Raises:
        InputError: something was asked for that is not there.
    """
    task = TASKS[args.task]
    budget = chosen_budget(args, task)
    folder = _committed(task, budget) if is_preset(task, budget) else None
    settings = None
    if task.settings_of and budget.name in budgets.PRESETS:  # wherever CORPUS lies: nothing is tuned on it
        settings = _committed(TASKS[task.settings_of], budget)
    rows = check_rows(task, budget, args.rows or ())
    out = args.out or Path("runs/study") / task.name
    return Plan(out, task, budget, rows, Results(folder, settings), not args.no_stored_states)


def _committed(task: Task, budget: Budget) -> Path:
    return task.recipe / "results" / (budget.committed or budget.name)


def keep_words(out: Path, words: Sequence[str]) -> None:
    """Write the command line where ``read_plan`` finds it."""
    (out / WORDS).write_text(json.dumps(list(words)) + "\n", encoding="utf-8")


def read_plan(out: Path) -> Plan:
    """Return the plan of the study in a folder, as its command line was."""
    return make_plan(parse_args(json.loads((out / WORDS).read_text(encoding="utf-8"))))
