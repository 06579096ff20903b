"""Train language models and rows, translate and score with each, and report."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.rows import calibration, jobs, plan, scripts
from lmfusion.rows.jobs import Places
from lmfusion.rows.plan import Plan
from lmfusion.runs.log_tail import last_words
from lmfusion.text import prepared
from lmfusion.text.prepared import Prepared

CALIBRATION = ".calibration"
STATES = "lm-states"
GIVEN = {scripts.SOURCE_LM: "src", scripts.TARGET_LM: "tgt"}
"""The side whose language model a script trains."""
MOST_STATES = 28_000
"""Training pairs up to which the frozen LM's states are stored: some 180 KB a pair."""


@dataclass(frozen=True)
class Asked:
    """Hold what the command line asks for.

    Attributes:
        data: prepared text.
        rows: names of rows.
        out: folder of all runs.
        minutes: for everything; None: by the amount of text.
        language_models: given ones, by side ("src", "tgt").
        seed: of all runs.
        jobs: scripts at once; None: by cores and GPUs.
        numbers: of the scripts, set by hand.
        title: of the report.
    """

    data: Prepared
    rows: Sequence[str]
    out: Path
    minutes: float | None = None
    language_models: dict[str, Path] = field(default_factory=dict)
    seed: int = 1
    jobs: int | None = None
    numbers: dict[str, str] = field(default_factory=dict)
    title: str = ""

    def lms(self) -> list[str]:
        """Return the scripts of the language models to be trained."""
        needed = {script for row in self.rows for script in scripts.needs(row)}
        return sorted(script for script in needed if GIVEN.get(script) not in self.language_models)


def check(asked: Asked) -> None:
    """Refuse what cannot be trained, before anything is.

    Raises:
        InputError: naming the row, the data or the language model.
    """
    scripts.check_rows(asked.rows)
    if asked.out.resolve() == asked.data.folder.resolve():
        raise InputError(f"--out {asked.out} is the folder of the prepared text: give the runs one of their own.")
    for part in (asked.data.bitext, *(asked.data.plain_text(lang) for lang in asked.data.symbols)):
        if not part.is_dir():
            raise InputError(f"{part} is missing: run `lmfusion data` again with --out {asked.data.folder}.")
    names = {"src": asked.data.source, "tgt": asked.data.target}
    for side, path in asked.language_models.items():
        _check_lm(side, path, asked, names[side])
    noised = [row for row in asked.rows if row in scripts.DENOISERS]
    if noised and asked.data.tokenizers:
        raise InputError(
            f"--rows {','.join(noised)}: a denoiser needs one dictionary for both sides, and {asked.data.folder} has "
            f"the pieces of a model of Hugging Face on one: prepare the text again without --src-hf and --tgt-hf."
        )
    for script, side in GIVEN.items():
        if script in asked.lms() and names[side] in asked.data.tokenizers:
            raise InputError(
                f"{asked.data.folder}: {names[side]} is in the pieces of a model of Hugging Face, its language model: "
                f"give the folder of that by --{side}-lm."
            )


def _check_lm(side: str, path: Path, asked: Asked, name: str) -> None:
    """Refuse a language model that cannot read the data of the side with this name."""
    if not path.exists():
        raise InputError(f"--{side}-lm {path}: does not exist.")
    import lmfusion
    from lmfusion.text.dictionaries import read_dictionary

    lm, dictionary = lmfusion.load_lm(path), asked.data.dictionary_of(name)
    _check_tokenizer(side, path, asked.data, name, lm)
    if not lm.by_symbol:
        lm.serve(list(read_dictionary(dictionary).symbols), what=str(dictionary))
    if asked.data.longest > lm.max_positions():
        raise InputError(
            f"{asked.data.folder} has a sentence of {asked.data.longest} symbols to validate or test on; {path} reads "
            f"{lm.max_positions()}: prepare it with --max-length {lm.max_positions()}."
        )


def _check_tokenizer(side: str, path: Path, data: Prepared, name: str, lm: Any) -> None:
    """Refuse a language model with another tokenizer than its side was encoded with."""
    tokenizer = getattr(lm.vocabulary, "tokenizer", None)
    expected, found = data.tokenizers.get(name), tokenizer.hash if tokenizer is not None else None
    if expected == found:
        return
    if expected is None:
        raise InputError(
            f"--{side}-lm {path} brings its own tokenizer, and {name} in {data.folder} has another BPE: prepare the "
            f"text again by lmfusion data … --{side}-hf {path}."
        )
    raise InputError(
        f"--{side}-lm {path}: its tokenizer is not that by which {name} in {data.folder} was encoded, or has changed "
        f"since: give the folder of then, or prepare the text again by lmfusion data … --{side}-hf {path}."
    )


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
        print(plan.what_is_cut(wanted, fresh.numbers, whole), end="", flush=True)
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

    def environment(script: str) -> dict[str, str]:
        return {**scripts.environment(asked.data, out, own, threads), **own}

    status = jobs.run_all(names, where, scripts.command, environment, log)
    if any(code in (jobs.INTERRUPTED, -2) for code in status.values()):
        raise KeyboardInterrupt
    return [name for name, code in status.items() if code]


def train(asked: Asked) -> list[str]:
    """Do it all; what is finished is not done again.

    Returns:
        The names of the rows and language models that failed, with the last words of each printed.

    Raises:
        InputError: something is wrong before anything is trained.
    """
    check(asked)
    where = Places.here(asked.jobs)
    fixed = fixed_plan(asked, where)
    _say(asked, fixed, where)
    failed = _run(asked, asked.lms(), fixed.numbers, where, asked.out)
    possible = [row for row in asked.rows if not set(scripts.needs(row)) & set(failed)]
    failed += _run(asked, possible, fixed.numbers, where, asked.out)
    done = [row for row in asked.rows if (asked.out / row / "scores.json").is_file()]
    if done:
        _report(asked, done)
    return failed


def _say(asked: Asked, fixed: Plan, where: Places) -> None:
    lms = f"language models {int(fixed.numbers['LM_UPDATES']):,} updates, " if asked.lms() else ""
    updates = int(fixed.numbers["S2S_UPDATES"])
    beside = f"{where.count} beside each other" if where.count > 1 else "one after the other"
    print(f"{asked.out}: {lms}rows {updates:,} updates each ({', '.join(asked.rows)}), {beside}", flush=True)
    print(f"  numbers: {json.dumps(fixed.numbers)}", flush=True)


def _report(asked: Asked, done: Sequence[str]) -> None:
    folders = [*done, *(scripts.run_folder(script, asked.data) for script in asked.lms())]
    test = [str(asked.data.text("test", side)) for side in (asked.data.source, asked.data.target)]
    words = [*(str(asked.out / name) for name in folders), "--out", str(asked.out / "report"), "--significance"]
    words += ["--title", asked.title or f"{asked.data.source} to {asked.data.target}"]
    words += ["--source", test[0], "--reference", test[1]]
    if subprocess.run([sys.executable, "-m", "lmfusion.cli", "report", *words], check=False).returncode:
        raise InputError(f"the report failed; what it said is above. Rows and scores are whole in {asked.out}.")


def read_data(folder: Path) -> Prepared:
    """Read a prepared folder; see :func:`lmfusion.text.prepared.read`."""
    return prepared.read(folder)
