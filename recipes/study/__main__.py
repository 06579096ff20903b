"""The command line of a recipe folder's study.sh."""

from __future__ import annotations

import argparse
import dataclasses
import fcntl
import json
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.runs.live_line import LiveLine
from lmfusion.runs.record import write_json
from study import budget as budgets
from study import estimate, into_page, machine, plan, recipe, report
from study.layout import Layout
from study.plan import Job
from study.results import Results, differing
from study.runner import Runner
from study.session import Session
from study.task import TASKS, Task, corpus_folder, count_pairs


def parse_args(words: Sequence[str]) -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="study.sh", description="Run the paper's table and figure as one study.")
    parser.add_argument("task", choices=TASKS, help=argparse.SUPPRESS)
    parser.add_argument(
        *("--budget",),
        nargs="+",
        default=["cpu"],
        metavar="WORD",
        help="cpu, cpu-long, cpu-others or gpu, whose hours --dry-run tells, and NAME=VALUE … to change its numbers",
    )
    parser.add_argument("--sizes", nargs="+", metavar="N", help="bitext sizes in the order they are run; all: all")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="rows, by the names of their scripts")
    parser.add_argument("--seeds", nargs="+", type=int, metavar="S", help="the first is the one dropouts are chosen by")
    parser.add_argument("--jobs", type=int, metavar="N", help="runs at a time (default: what the machine carries)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the study's folder (default: runs/study/NAME)")
    parser.add_argument("--dry-run", action="store_true", help="show the runs in their order, with estimated hours")
    parser.add_argument("--report-only", action="store_true", help="run nothing: the report of what there is")
    parser.add_argument("--add-results", action="store_true", help="copy what has finished into the committed results")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="renew this study's tables in a page of Markdown")
    parser.add_argument("--no-stored-states", action="store_true", help="do not keep the frozen LM's states on disk")
    return parser.parse_args(words)


def chosen_budget(args: argparse.Namespace, task: Task) -> budgets.Budget:
    """The budget with the sizes and seeds that were asked for.

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
    if args.jobs is not None and args.jobs < 1:
        raise InputError(f"--jobs {args.jobs}: give a number above 0")
    return dataclasses.replace(budget, seeds=tuple(args.seeds)) if args.seeds else budget


def show_plan(jobs: Sequence[Job], session: Session, at_a_time: int, gpu: bool) -> None:
    """Every job in its order, the hours each and all take at most."""
    sums = 0.0
    for number, job in enumerate(jobs, start=1):
        seconds = 0.0 if session.is_committed(job) else estimate.seconds(job, session.layout.task.name, gpu)
        sums += seconds
        note = "committed" if session.is_committed(job) else f"at most {estimate.in_words(seconds)[6:]}"
        print(f"{number:4}  {job.name:50} {f'{job.updates:,} updates' if job.updates else '':15} {note}")
    print(f"{len(jobs)} jobs, {at_a_time} at a time: at most about {sums / at_a_time / 3600:.1f} hours.")
    if gpu:
        print("(For a GPU the times are a guess; they are corrected while the study runs.)")


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Let one study at a time work in a folder.

    Raises:
        InputError: another one does.
    """
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".study.lock").open("w", encoding="utf-8") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise InputError(f"{out}: another study is at work there. Wait for it, or choose another --out.") from error
        yield


def same_numbers(out: Path, numbers: Mapping[str, Any]) -> None:
    """Keep the study's numbers, or check them against those that its folder was begun with.

    Raises:
        InputError: they are others.
    """
    path, now = out / "study.json", dict(numbers)
    before = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else now
    if said := differing(before, now):
        raise InputError(f"{out} was begun with other numbers ({said}). Choose another --out, or delete it.")
    write_json(path, now)


def run(args: argparse.Namespace) -> int:
    """The study; its exit status.

    Raises:
        InputError: something was asked for that is not there.
    """
    task = TASKS[args.task]
    budget = chosen_budget(args, task)
    own = recipe.overridden(task)
    is_preset = budget.name in budgets.PRESETS and not own
    results = Results(task.recipe / "results" / (budget.committed or budget.name) if is_preset else None)
    numbers = {**budget.numbers(), **recipe.numbers(task, budget)}
    results.check(numbers)
    gpu = machine.has_gpu()
    out = args.out or Path("runs/study") / task.name
    session = Session(Layout(out, task, budget, store_states=not gpu and not args.no_stored_states), results)
    jobs = plan.make(budget, task, args.rows or budget.rows or task.rows, count_pairs(task, corpus_folder()))
    at_a_time = args.jobs or machine.jobs_that_fit(gpu)
    if args.dry_run:
        show_plan(jobs, session, at_a_time, gpu)
        return 0
    for option, given in (("--add-results", args.add_results), ("--into", args.into)):
        if given and not is_preset:
            raise InputError(
                f"{option} is for runs of preset budgets only; not preset: {', '.join(own) or '--budget'}."
            )
    with locked(out):
        same_numbers(out, numbers)
        runner = _run_jobs(session, [] if args.report_only else jobs, at_a_time, gpu)
        return _finish(args, session, jobs, runner, numbers)


def _run_jobs(session: Session, jobs: Sequence[Job], at_a_time: int, gpu: bool) -> Runner:
    expected = {job: estimate.seconds(job, session.layout.task.name, gpu) for job in jobs}
    clock = estimate.Clock(expected, at_a_time)
    runner = Runner(jobs, session.start, at_a_time, clock, LiveLine(sys.stdout))
    runner.run()
    return runner


def _finish(
    args: argparse.Namespace, session: Session, jobs: Sequence[Job], runner: Runner, numbers: Mapping[str, Any]
) -> int:
    """What was chosen, the committed results, the report, and the names of what failed."""
    layout, results = session.layout, session.results
    finished: list[Job] = []
    for job in jobs:
        if all(need in finished for need in job.needs) and session.start(job).is_done():
            finished.append(job)
    choices = session.choices(finished)
    (layout.out / "choices.json").write_text(json.dumps(choices, indent=2) + "\n", encoding="utf-8")
    settings = {job: session.setting(job) for job in jobs if all(need in finished for need in job.needs)}
    if args.add_results:
        own = [job for job in finished if job.kind == plan.FINAL]
        added = [job for job in own if results.add(job, layout.run(job, settings[job]), layout.out)]
        results.describe(numbers, choices)
        print(f"added to {results.folder}: {len(added)} runs")
    folders = report.run_folders(layout, results, list(settings.items()))
    if folders:
        status = report.write(layout, folders, f"{layout.task.title}: budget {layout.budget.name}")
        if args.into and status == 0:
            assert results.folder is not None, "checked with the command line"
            parts = (layout.out / "report", results.folder, layout.task.name, layout.budget.name)
            print(f"renewed in {args.into}: {into_page.fill(args.into, *parts)} parts")
    else:
        print("No run has begun, so there is no report.")
        status = 0
    for job, reason in runner.failed.items():
        print(f"failed: {job.name}: {reason.splitlines()[0]}", file=sys.stderr)
    if runner.failed:
        print(f"error: {len(runner.failed)} jobs failed. The same command tries them again.", file=sys.stderr)
    return 1 if runner.failed else status


def main() -> int:
    """The command line; the same command resumes after an interruption."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return run(parse_args(sys.argv[1:]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same command resumes", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
