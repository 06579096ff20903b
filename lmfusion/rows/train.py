"""Train language models and rows, translate and score with each, and report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from lmfusion.errors import InputError
from lmfusion.rows import calibration, jobs, plan, scripts
from lmfusion.rows.asked import Asked, check
from lmfusion.rows.jobs import Places
from lmfusion.rows.plan import Plan
from lmfusion.runs.log_tail import last_words
from lmfusion.runs.run_folder import SCORES_FILE, RunFolder
from lmfusion.text import prepared
from lmfusion.text.prepared import Prepared

CALIBRATION = ".calibration"
STATES = "lm-states"
MOST_STATES = 28_000
"""Training pairs up to which the frozen LM's states are stored: some 180 KB a pair."""


def fixed_plan(asked: Asked, where: Places) -> Plan:
    """Return the folder's plan, or make it: by the amount of text, and by the minutes where they are given.

    Raises:
        InputError: the folder was begun otherwise, or the time is too short.
    """
    fresh = plan.new(asked.data, asked.seed, asked.language_models, asked.numbers)
    before = plan.read(asked.out)
    if before is not None:
        plan.check_same(before, fresh, asked.out)
        if asked.minutes is not None:
            print(f"{asked.out} goes on with the updates that were fixed when it was begun, whatever --minutes says.")
        return before
    if asked.minutes is not None:
        began = time.monotonic()
        seconds = _calibrate(asked, asked.minutes, fresh, where)
        spent = (time.monotonic() - began) / 60
        whole, wanted = plan.whole_minutes(fresh, spent, seconds, where.count), fresh.numbers
        fresh = plan.within(fresh, asked.minutes, spent, seconds, where.count)
        print(plan.what_is_cut(wanted, fresh.numbers, whole, seconds), end="", flush=True)
    fresh.save(asked.out)
    return fresh


def _calibrate(asked: Asked, minutes: float, fresh: Plan, where: Places) -> dict[str, float]:
    """Return the seconds of an update of each script.

    Raises:
        InputError: a script fails, or the minutes are too few.
    """
    out = asked.out / CALIBRATION
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    short = dict.fromkeys(("LM_UPDATES", "S2S_UPDATES"), str(calibration.UPDATES))
    never = dict.fromkeys(("LM_VALIDATE_EVERY", "S2S_VALIDATE_EVERY"), "1000000")
    numbers = {**fresh.numbers, **short, **never}

    def run(names: Sequence[str], beside: int) -> None:
        if failed := _run(asked, names, numbers, where, out, log=out / "log", beside=beside):
            raise InputError(f"{failed[0]} fails: {last_words(out / 'log')}")

    def folder(script: str) -> Path:
        return out / scripts.run_folder(script, asked.data)

    found = calibration.measure((asked.lms(), asked.rows), minutes, where.count, run, folder)
    shutil.rmtree(out)
    return found


def _run(
    asked: Asked,
    names: Sequence[str],
    numbers: dict[str, str],
    where: Places,
    out: Path,
    log: Path | None = None,
    beside: int | None = None,
) -> list[str]:
    """Run scripts, with the threads of one among so many; return the names of those that failed."""
    threads = 1 if where.gpus else where.threads(beside or len(names))
    own = {"SEED": str(asked.seed), **numbers}
    for side, path in asked.language_models.items():
        own[f"{side.upper()}_LM"] = str(path)
    if log is not None:
        own["TRAIN_ONLY"] = "1"
    elif not where.gpus and asked.data.pairs <= MOST_STATES:
        own["SRC_LM_CACHE"] = str(out / STATES)
    environment = {**scripts.environment(asked.data, out, own, threads), **own}
    status = jobs.run_all(names, where, scripts.command, environment, log)
    if any(code in (jobs.INTERRUPTED, -2) for code in status.values()):
        raise KeyboardInterrupt
    return [name for name, code in status.items() if code]


def train(asked: Asked) -> list[str]:
    """Do it all; what is finished is not done again.

    Returns:
        The names of the rows and language models that failed, with the last words of each printed, and of the rows
        whose records or scores could not be read for the report.

    Raises:
        InputError: something is wrong before anything is trained.
    """
    check(asked)
    own = RunFolder(asked.out)
    own.lock()  # a second command would take rows from this one, which then fail here
    where = Places.here(asked.jobs)
    fixed = fixed_plan(asked, where)
    _say(asked, fixed, where)
    failed = _run(asked, asked.lms(), fixed.numbers, where, asked.out)
    possible = [row for row in asked.rows if not set(scripts.needs(row)) & set(failed)]
    failed += _run(asked, possible, fixed.numbers, where, asked.out)
    rows = dict.fromkeys([*asked.rows, *scripts.rows()])  # those of earlier commands, too
    done = [row for row in rows if (asked.out / row / SCORES_FILE).is_file()]
    if done and not _report(replace(asked, rows=done)):
        failed += [row for row in possible if row not in failed and _is_damaged(asked.out / row)]
    return failed


def _say(asked: Asked, fixed: Plan, where: Places) -> None:
    trained = set(asked.lms()) - {scripts.REVERSE}
    lms = f"language models {int(fixed.numbers['LM_UPDATES']):,} updates, " if trained else ""
    updates = int(fixed.numbers["S2S_UPDATES"])
    beside = f"{where.count} beside each other" if where.count > 1 else "one after the other"
    print(f"{asked.out}: {lms}rows {updates:,} updates each ({', '.join(asked.rows)}), {beside}", flush=True)
    print(f"  numbers: {json.dumps(fixed.numbers)}", flush=True)


def _is_damaged(folder: Path) -> bool:
    """Return True if a row's record or scores cannot be read; the report has said what is wrong."""
    from lmfusion.report.page.find import Found
    from lmfusion.report.page.notices import Notices
    from lmfusion.report.page.read_run import read_run

    run = read_run(Found(folder, folder.name), Notices())
    return bool(run.broken) or not run.scores  # a log or translations that were deleted take no row out of the tables


def _report(asked: Asked) -> bool:
    """Write the report; return False if it lacks something that could not be read.

    Raises:
        InputError: there is none.
    """
    lms = [scripts.run_folder(script, asked.data) for script in asked.lms() if script != scripts.REVERSE]
    # A row that is done holds its language model, whose own folder may have been deleted.
    folders = [*asked.rows, *(name for name in lms if (asked.out / name).is_dir())]
    test = [str(asked.data.text("test", side)) for side in (asked.data.source, asked.data.target)]
    words = [*(str(asked.out / name) for name in folders), "--out", str(asked.out / "report"), "--significance"]
    words += ["--title", asked.title or f"{asked.data.source} to {asked.data.target}"]
    words += ["--source", test[0], "--reference", test[1]]
    page = asked.out / "report" / "report.html"
    before = _written(page)
    if subprocess.run([sys.executable, "-P", "-m", "lmfusion.cli", "report", *words], check=False).returncode:
        if _written(page) == before:
            raise InputError(f"the report failed; what it said is above. Rows and scores are whole in {asked.out}.")
        print(f"{page} has all the rows, but for what it could not read of them (see above).", flush=True)
        return False
    return True


def _written(path: Path) -> int | None:
    """Return when a file was written; None if it is not there."""
    return path.stat().st_mtime_ns if path.is_file() else None


def read_data(folder: Path) -> Prepared:
    """Read a prepared folder; see :func:`lmfusion.text.prepared.read`."""
    return prepared.read(folder)
