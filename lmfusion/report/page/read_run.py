"""A run folder on disk -> a Run. Nothing here raises: a folder that is damaged becomes a run that says so.

The folder may come from a stranger, and the page may be passed on. So only these of its files are read, none of them
where its name or a link leads out of the folder (see RunFolder.file): run.json, scores.json, train.log, generate.log,
the hypotheses that scores.json names and, for the facts of a model that run.json lacks, the best checkpoint. Texts that
scores.json names elsewhere are read by texts.py, only where their SHA-256 is the recorded one.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmfusion.errors import LMFusionError
from lmfusion.report.page.command_line import parse
from lmfusion.report.page.find import Found
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run
from lmfusion.report.page.strategy import is_language_model
from lmfusion.runs import model_facts, train_log
from lmfusion.runs.hypotheses import headline
from lmfusion.runs.run_folder import FAILED, FINISHED, RUN_FILE, SCORES_FILE, RunFolder

_LOADED = re.compile(r"loaded ([\d,]+) examples from: \S*train\.")
_LOADED_WITHIN = 2_000_000  # characters of the log
_TEXTS = ("signature", "chrf_signature", "hypotheses", "reference", "reference_sha256", "source", "source_sha256")


def read_run(found: Found, notices: Notices) -> Run:
    """Return everything a folder tells, and notice what it should tell and does not."""
    folder = RunFolder(found.path)
    try:
        record = folder.record
        reason = _why_unusable(record)
    except (LMFusionError, OSError) as error:
        record, reason = {}, str(error)
    if reason:
        reason = reason if str(found.path) in reason else f"{found.path}: {reason}"
        notices.bad_input(reason)
        return Run(found, broken=reason)
    scores = _scores(folder, found.name, notices)
    log, pairs = _log(folder, record, found.name, notices)
    return Run(
        found=found,
        state=_state(record, bool(scores)),
        reason=_reason(record),
        record=record,
        scores=scores,
        outputs=_outputs(folder, scores, found.name, notices),
        printed=_file(folder, "generate.log", found.name, notices),
        model=_model(folder, record, found.name, notices),
        log=log,
        loaded_pairs=pairs,
    )


def _why_unusable(record: Mapping[str, Any]) -> str:
    """Say what a run.json lacks that every run.json has; nothing if it lacks nothing."""
    if not record:
        return f"there is a log, but no {RUN_FILE}. Was it deleted? Run it again in a new folder."
    if not record.get("steps"):
        return f"{RUN_FILE} has no steps: it is half-written. Run it again in a new folder."
    for name, step in record["steps"].items():
        if not {"state", "command", "seconds"} <= step.keys():
            return f"{RUN_FILE} tells neither state nor command of its step '{name}': it is half-written."
        if step["state"] == FINISHED and "result" not in step:
            return f"{RUN_FILE} calls its step '{name}' finished, but has no result of it: it is half-written."
    return ""


def _state(record: Mapping[str, Any], scored: bool) -> str:
    for name, step in record["steps"].items():
        what = {"train": "training", "generate": "generation"}.get(name, name)
        if step["state"] != FINISHED:
            return f"{what} failed" if step["state"] == FAILED else f"{what} unfinished"
    command = record["steps"].get("train", {}).get("command", [])
    return "" if scored or is_language_model(parse(command)) else "not scored"


def _reason(record: Mapping[str, Any]) -> str:
    failed = [step for step in record["steps"].values() if step["state"] == FAILED]
    return "\n".join(line.strip() for line in str(failed[0].get("reason", "")).splitlines()) if failed else ""


def _file(folder: RunFolder, file: str, run: str, notices: Notices, missed: str = "") -> Path | None:
    """Return a file's path; None if it leads out of the folder or is not there, which is noticed if it is missed."""
    try:
        path = folder.file(file)
    except LMFusionError as error:
        notices.bad_input(f"{run}: {error}")
        return None
    if os.path.isfile(path):  # pathlib's raises for a name that is too long
        return path
    if missed:
        notices.bad_input(f"{run}: {path} is missing, so there are no {missed} of it.")
    return None


def _scores(folder: RunFolder, name: str, notices: Notices) -> dict[str, Mapping[str, Any]]:
    try:
        entries = folder.scores
    except (LMFusionError, OSError) as error:
        notices.bad_input(str(error))
        return {}
    usable: dict[str, Mapping[str, Any]] = {}
    for data_set, entry in entries.items():
        try:
            figures = headline(entry)
            whole = bool(figures) and all(math.isfinite(value) for value in figures.values())
            whole = whole and all(isinstance(entry.get(text, ""), str) for text in _TEXTS)
        except (KeyError, TypeError, OverflowError):
            figures, whole = {}, False
        if whole:
            usable[data_set] = entry
        else:
            notices.bad_input(
                f"{name}: the scores of '{data_set}' in {folder.path / SCORES_FILE} are half-written or no numbers "
                f"({figures or entry}), and are left out. Score the run again."
            )
    return usable


def _log(
    folder: RunFolder, record: Mapping[str, Any], name: str, notices: Notices
) -> tuple[train_log.TrainLog, int | None]:
    """Return the training log, and how many training pairs fairseq loaded by it."""
    if "train" not in record["steps"]:
        return train_log.TrainLog(), None
    path = _file(folder, "train.log", name, notices, missed="learning curves")
    if path is None:
        return train_log.TrainLog(), None
    log = train_log.read_file(path)
    if record["steps"]["train"]["state"] == FINISHED and not log.updates:
        notices.bad_input(f"{name}: {path} has no figures, though its training finished. Was it cut or replaced?")
    with path.open(encoding="utf-8", errors="replace") as stream:
        loaded = _LOADED.search(stream.read(_LOADED_WITHIN))
    return log, int(loaded[1].replace(",", "")) if loaded else None


def _model(folder: RunFolder, record: Mapping[str, Any], name: str, notices: Notices) -> Mapping[str, Any]:
    """Return facts of the trained model; of one that still trains, none."""
    if record["steps"].get("train", {}).get("state") != FINISHED:
        return {}
    try:
        return model_facts.read(folder)
    except LMFusionError as error:
        notices.bad_input(f"{name}: {error}")
        return {}


def _outputs(
    folder: RunFolder, scores: Mapping[str, Mapping[str, Any]], name: str, notices: Notices
) -> dict[str, Path]:
    """Return the files of hypotheses by test set; one that is not what was scored is noticed and shown all the same."""
    found = {}
    for data_set, entry in scores.items():
        path = _file(folder, entry.get("hypotheses", f"{data_set}.hyp"), name, notices, missed="examples")
        if path is None:
            continue
        found[data_set] = path
        expected, lines = entry.get("sentences", entry.get("summaries")), path.read_bytes().count(b"\n")
        if expected is not None and lines != expected:
            notices.bad_input(
                f"{name}: {path} has {lines:,} lines, but the score is of {expected} sentences. Score it again."
            )
    return found
