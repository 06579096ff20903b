"""What a recipe folder's study.sh runs: Snakemake on the rules, then the report of what there is."""

from __future__ import annotations

import argparse
import fcntl
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmfusion.child_processes import die_with_parent
from lmfusion.errors import InputError
from lmfusion.rows.scripts import is_back_translated
from lmfusion.runs.record import read_json, write_json
from study import command, finals_table, into_page, parts_table, recipe, report, search_table
from study.finals import finals
from study.plan import Plan
from study.results import differing

SNAKEFILE = Path(__file__).parent / "rules.smk"


@contextmanager
def locked(out: Path) -> Iterator[int]:
    """Let one study at a time work in a folder; yields the lock's file, for a child that is to hold it too.

    Raises:
        InputError: another one does.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".study.lock").open("w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{out}: another study is at work there. Wait for it, or choose another --out.") from error
        yield stream.fileno()


def same_numbers(out: Path, numbers: Mapping[str, Any]) -> None:
    """Keep the study's numbers, or check them against those that its folder was begun with.

    Raises:
        InputError: they are others.
    """
    path, now = out / "study.json", dict(numbers)
    before = read_json(path) if path.is_file() else now
    if said := differing(before, now):
        raise InputError(f"{out} was begun with other numbers ({said}). Choose another --out, or delete it.")
    write_json(path, now)


def snakemake(args: argparse.Namespace, words: Sequence[str], further: Sequence[str], lock: int | None = None) -> int:
    """Run the rules, or show what they would run; its exit status.

    Raises:
        InputError: Snakemake is not installed.
    """
    if importlib.util.find_spec("snakemake") is None:
        raise InputError("a study runs on Snakemake. Install it: pip install -c constraints.txt '.[study]'")
    cores = ["--cores", str(args.cores or "all"), "--resources", f"mem_mb={_memory()}"]
    if has_gpu():
        import torch

        cores.append(f"gpu_mb={torch.cuda.mem_get_info()[0] // 10**6}")
    # One study at a time is locked here, so that a killed one leaves no lock that has to be taken away by hand.
    own = ["--keep-going", "--quiet", "host", "--rerun-triggers", "mtime", "--rerun-incomplete", "--nolock"]
    own += ["--dry-run"] if args.dry_run else []
    base = [
        sys.executable,
        "-m",
        "snakemake",
        "--snakefile",
        str(SNAKEFILE),
        "--config",
        f"words={json.dumps(list(words))}",
    ]
    kept = () if lock is None else (lock,)  # held until the last of the jobs that outlive a killed study has ended
    command_line = [*base, *cores, *own, *further]
    return subprocess.run(command_line, check=False, pass_fds=kept, preexec_fn=die_with_parent()).returncode


def run(args: argparse.Namespace, words: Sequence[str], further: Sequence[str]) -> int:
    """Run the study; its exit status.

    Raises:
        InputError: something was asked for that is not there.
    """
    plan = command.make_plan(args)
    numbers = {**plan.budget.numbers(), **recipe.numbers(plan.task, plan.budget)}
    plan.results.check(numbers)
    plan.cells()  # says which size is none
    if args.dry_run:
        return snakemake(args, words, further)
    for option, given in (("--add-results", args.add_results), ("--into", args.into)):
        if given and plan.results.folder is None:
            own = ", ".join(recipe.overridden(plan.task)) or "--budget"
            raise InputError(f"{option} is for runs of preset budgets only; not preset: {own}.")
    if args.report_only:  # also while a study is at work there
        plan.out.mkdir(parents=True, exist_ok=True)
        same_numbers(plan.out, numbers)
        return _finish(args, plan, numbers)
    with locked(plan.out) as lock:
        same_numbers(plan.out, numbers)
        command.keep_words(plan.out, words)
        status = snakemake(args, words, further, lock)
        reported = _finish(args, plan, numbers)
    if status:
        print(f"error: jobs failed, see above and {plan.out}/logs. The same command tries them again.", file=sys.stderr)
    return 1 if status else reported


def _finish(args: argparse.Namespace, plan: Plan, numbers: Mapping[str, Any]) -> int:
    """Write what was chosen, the committed results and the report."""
    choices, tries = plan.choices(), plan.tries()
    write_json(plan.out / "choices.json", choices)
    if args.add_results:
        own = [
            (cell, found) for cell in plan.cells() if (found := report.own_run(plan, cell)) and found.scores.get("test")
        ]
        added = [cell for cell, found in own if plan.results.add(cell, found, plan.out)]
        for size in {cell.size for cell in plan.cells() if is_back_translated(cell.row)}:
            if reverse := report.own_run(plan, plan.reverse(size)):
                plan.results.add_synthetic(size, reverse, plan.out)
        plan.results.describe(numbers, choices, tries)
        print(f"added to {plan.results.folder}: {len(added)} runs; {len(tries)} configurations tried")
    folders = report.run_folders(plan)
    scored = list(finals(plan))
    of_parts, pictures = parts_table.sections(plan, scored)
    further = finals_table.sections(plan, scored) + of_parts + search_table.sections(tries, plan.chosen())
    if not folders and not further:
        print("No run has begun, so there is no report.")
        return 0
    status = report.write(plan, folders, f"{plan.task.title}: budget {plan.budget.name}", further, pictures)
    if args.into and status == 0:
        assert plan.results.folder is not None, "checked with the command line"
        parts = (plan.out / "report", plan.results.folder, plan.task.name, plan.budget.name)
        print(f"renewed in {args.into}: {into_page.fill(args.into, *parts)} parts")
    return status


def _memory() -> int:
    """Return this machine's main memory in megabytes."""
    return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 10**6)


def has_gpu() -> bool:
    """Tell whether runs compute on a GPU, as recipes/_common.sh decides it."""
    import torch

    return bool(torch.cuda.is_available())


def main() -> int:
    """Run the command line; the same command resumes after an interruption."""
    words, further = list(sys.argv[1:]), []
    if "--" in words:
        at = words.index("--")
        words, further = words[:at], words[at + 1 :]
    if has_gpu() and "--no-stored-states" not in words:
        words.append("--no-stored-states")  # on a GPU the LM is faster than its states on disk
    try:
        return run(command.parse_args(words), words, further)
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
