"""A run folder on disk -> a Run. Nothing here raises: a folder that is damaged becomes a run that says so."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from typing import Any

from lmfusion.errors import LMFusionError
from lmfusion.report.page.command_line import parse
from lmfusion.report.page.find import Found
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run
from lmfusion.report.page.strategy import is_language_model
from lmfusion.report.table import headline
from lmfusion.runs import model_facts, train_log
from lmfusion.runs.run_folder import FAILED, FINISHED, RUN_FILE, RunFolder

_LOADED = re.compile(r"loaded ([\d,]+) examples from: \S*train\.")
_LOADED_WITHIN = 2_000_000  # characters of the log


def read_run(found: Found, notices: Notices) -> Run:
    """Everything a folder tells, and notices of what it should tell and does not."""
    folder = RunFolder(found.path)
    try:
        record = folder.record
    except (LMFusionError, OSError) as error:
        return _broken(found, str(error), notices)
    if reason := _why_unusable(record):
        return _broken(found, f"{found.path}: {reason}", notices)
    scores = _scores(folder, found.name, notices)
    log, pairs = _log(folder, record, found.name, notices)
    run = Run(
        found=found,
        state=_state(record, bool(scores)),
        reason=_reason(record),
        record=record,
        scores=scores,
        model=_model(folder, record, found.name, notices),
        log=log,
        loaded_pairs=pairs,
    )
    _check_hypotheses(run, notices)
    return run


def _broken(found: Found, reason: str, notices: Notices) -> Run:
    notices.bad_input(reason)
    return Run(found, broken=reason)


def _why_unusable(record: Mapping[str, Any]) -> str:
    """What a run.json lacks that every run.json has; empty if nothing."""
    if not record:
        return f"there is a log, but no {RUN_FILE}. Was it deleted? Run it again in a new folder."
    steps = record.get("steps")
    if not isinstance(steps, dict) or not steps:
        return f"{RUN_FILE} has no steps: it is half-written. Run it again in a new folder."
    for name, step in steps.items():
        if not isinstance(step, dict) or not {"state", "command", "seconds"} <= step.keys():
            return f"{RUN_FILE} tells neither state nor command of its step '{name}': it is half-written."
        if step["state"] == FINISHED and not isinstance(step.get("result"), dict):
            return f"{RUN_FILE} calls its step '{name}' finished, but has no result of it: it is half-written."
    return ""


def _state(record: Mapping[str, Any], scored: bool) -> str:
    for name, step in record["steps"].items():
        what = {"train": "training", "generate": "generation"}.get(name, name)
        if step["state"] == FAILED:
            return f"{what} failed"
        if step["state"] != FINISHED:
            return f"{what} unfinished"
    command = record["steps"].get("train", {}).get("command", [])
    return "" if scored or is_language_model(parse(command)) else "not scored"


def _reason(record: Mapping[str, Any]) -> str:
    failed = [step for step in record["steps"].values() if step["state"] == FAILED]
    return "\n".join(line.strip() for line in str(failed[0].get("reason", "")).splitlines()) if failed else ""


def _scores(folder: RunFolder, name: str, notices: Notices) -> dict[str, Mapping[str, Any]]:
    try:
        entries = folder.scores
    except (LMFusionError, OSError) as error:
        notices.bad_input(str(error))
        return {}
    usable: dict[str, Mapping[str, Any]] = {}
    for data_set, entry in entries.items():
        figures = _figures(entry)
        if figures and all(isinstance(value, (int, float)) and math.isfinite(value) for value in figures.values()):
            usable[data_set] = entry
        else:
            notices.bad_input(
                f"{name}: the scores of '{data_set}' in {folder.path / 'scores.json'} are half-written or no numbers "
                f"({figures or entry}), and are left out. Score the run again."
            )
    return usable


def _figures(entry: Any) -> dict[str, float]:
    try:
        return headline(entry)
    except (KeyError, TypeError):
        return {}


def _log(
    folder: RunFolder, record: Mapping[str, Any], name: str, notices: Notices
) -> tuple[train_log.TrainLog, int | None]:
    """The training log, and how many training pairs fairseq loaded by it."""
    path = folder.log("train")
    if "train" not in record["steps"]:
        return train_log.TrainLog(), None
    if not path.is_file():
        notices.bad_input(f"{name}: {path} is missing, so there are no learning curves of it.")
        return train_log.TrainLog(), None
    log = train_log.read_file(path)
    if record["steps"]["train"]["state"] == FINISHED and not log.updates:
        notices.bad_input(f"{name}: {path} has no figures, though its training finished. Was it cut or replaced?")
    with path.open(encoding="utf-8", errors="replace") as stream:
        loaded = _LOADED.search(stream.read(_LOADED_WITHIN))
    return log, int(loaded[1].replace(",", "")) if loaded else None


def _model(folder: RunFolder, record: Mapping[str, Any], name: str, notices: Notices) -> Mapping[str, Any]:
    """Facts of the trained model; of one that still trains, none."""
    if record["steps"].get("train", {}).get("state") != FINISHED:
        return {}
    try:
        return model_facts.read(folder)
    except LMFusionError as error:
        notices.bad_input(f"{name}: {error}")
        return {}


def _check_hypotheses(run: Run, notices: Notices) -> None:
    """A finished run's text has to be what was scored."""
    for data_set, entry in run.scores.items():
        path = run.found.path / str(entry.get("hypotheses", f"{data_set}.hyp"))
        expected = entry.get("sentences", entry.get("summaries"))
        if not os.path.isfile(path):  # also of a name that can be none
            notices.bad_input(f"{run.name}: {path} is missing, so there are no examples of it.")
            continue
        lines = path.read_bytes().count(b"\n")
        if expected is not None and lines != expected:
            notices.bad_input(
                f"{run.name}: {path} has {lines:,} lines, but the score is of {expected} sentences. Score it again."
            )
