"""A run folder: one model's training and its scores.

    run.json      what was run: a record of each step (command, state, seconds, result), commit, versions, data hashes,
                  and what the trained model is (size, language models inside, mixing weights)
    scores.json   scores by data set, each with its signature
    train.log …   what the commands printed
    checkpoints/  fairseq's checkpoints

A step that finished is not run again, one that was killed is continued, and nothing is ever overwritten by a run
with other flags or other data.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

from lmfusion.errors import InputError
from lmfusion.runs import places, provenance
from lmfusion.runs.record import read_json, read_record, write_json

STARTED, FINISHED, FAILED = "started", "finished", "failed"
RUN_FILE, SCORES_FILE, LOCK_FILE = "run.json", "scores.json", ".lock"


class RunFolder:
    """One run folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """Return the content of run.json, empty before the first step.

        Raises:
            InputError: it is no JSON object, has a part of a type that is never written, or leads out of the folder.
        """
        return read_record(self.file(RUN_FILE))

    @property
    def scores(self) -> dict[str, Any]:
        """Return the content of scores.json by data set, empty before the first score; raises as ``record`` does."""
        return read_json(self.file(SCORES_FILE))

    def file(self, name: str) -> Path:
        """Return the path of a file of this folder, which need not exist.

        Names come from files of the folder, and the folder may come from a stranger: what is read here may be shown on
        a page, so no name and no link may lead to a file elsewhere.

        Raises:
            InputError: the name, or a link, leads out of the folder.
        """
        path = self.path / name
        try:
            inside = path.resolve().is_relative_to(self.path.resolve())
        except (OSError, RuntimeError, ValueError):  # a circle of links, or a name that no file can have
            inside = False
        if not inside:
            raise InputError(
                f"{path}: leads out of the run folder, so it is not read. If you trust it, copy it into the folder."
            )
        return path

    def hypotheses(self, data_set: str) -> Path:
        """Return the path of the text that a data set's score is of; raises as ``file`` does."""
        return self.file(str(self.scores.get(data_set, {}).get("hypotheses", f"{data_set}.hyp")))

    @property
    def checkpoints(self) -> Path:
        """Return the folder in which fairseq keeps this run's checkpoints; it may be a link to a larger disk."""
        return self.path / "checkpoints"

    def log(self, step: str) -> Path:
        """Return the path of a step's output; raises as ``file`` does."""
        return self.file(f"{step}.log")

    def step(self, name: str) -> dict[str, Any]:
        """Return the record of a step, empty if it was never started."""
        step: dict[str, Any] = self.record.get("steps", {}).get(name, {})
        return step

    def lock(self) -> int:
        """Claim the folder for this process and those that inherit the returned file descriptor.

        Raises:
            InputError: another process is at work there.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = self.file(LOCK_FILE).open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "unknown"
            raise InputError(
                f"{self.path}: another process (started by process {owner}) is still at work in this run folder. "
                f"Wait until it ends or stop it, then run the same command again."
            ) from error
        self._lock.truncate(0)
        self._lock.write(str(os.getpid()))
        self._lock.flush()
        return self._lock.fileno()

    def begin(
        self,
        name: str,
        command: list[str],
        *,
        seed: int | None = None,
        data: Path | None = None,
        launch: Sequence[str] = (),
    ) -> bool:
        """Record that a step starts or goes on; False if it is finished already.

        Args:
            launch: what starts the command on several devices, of which only the number of processes is recorded.

        Raises:
            InputError: the step was begun with another command or on other data.
        """
        hashes = provenance.hash_data(data) if data else None
        before = self.step(name)
        known = before.get("places") if before.get("command") == command else None
        where = places.places(command, self.path, data) if known is None else known  # which hashes language models
        if before:
            self._check_same(name, before, command, where)
            if before.get("data_sha256") != hashes:
                raise self._other(name, "on other data")
            if before.get("state") == FINISHED:
                return False
        step = {"seconds": 0.0, "attempts": 0, **before, "command": command, "data_sha256": hashes}
        step["places"] = where
        step["launch"] = provenance.launch([*launch, *command])
        step.update(state=STARTED, attempts=step["attempts"] + 1, started_at=step.get("started_at", now()))
        self._update(name, step, seed=seed)
        return True

    def _check_same(self, name: str, before: dict[str, Any], command: list[str], where: dict[str, str]) -> None:
        """Refuse another command than the step was begun with, files and folders that were only moved aside."""
        words = before.get("command") or []
        difference = places.differing(words, before.get("places") or {}, command, where)
        if difference is None:
            return
        gone, new = (" ".join(words) or "nothing" for words in difference)
        moved = "" if "places" in before else " (what was only moved since has to lie there again: a link will do)"
        raise self._other(name, f"with other flags ({gone} then, {new} now){moved}")

    def _other(self, name: str, how: str) -> InputError:
        return InputError(
            f"{self.path}: its step '{name}' was begun {how}. Choose another run folder (--out), or delete this one; "
            f"nothing was changed."
        )

    def add_seconds(self, name: str, seconds: float) -> None:
        """Count time spent on a step, so that a killed attempt counts too."""
        step = self.step(name)
        self._update(name, {**step, "seconds": round(step["seconds"] + seconds, 1)})

    def finish(self, name: str, result: dict[str, Any]) -> None:
        """Record that a step finished and what came of it, plain values by name."""
        self._update(name, {**self.step(name), "state": FINISHED, "finished_at": now(), "result": result})

    def fail(self, name: str, reason: str) -> None:
        """Record that a step failed and why, in a line; it may be begun again."""
        self._update(name, {**self.step(name), "state": FAILED, "reason": reason})

    def set_model(self, facts: dict[str, Any]) -> None:
        """Record what the trained model is, for when its checkpoints are gone."""
        write_json(self.path / RUN_FILE, {**self.record, "model": facts})

    def add_score(self, data_set: str, score: dict[str, Any]) -> None:
        """Add the scores of one data set to scores.json: metrics by name, as a score's ``to_dict`` gives them."""
        write_json(self.path / SCORES_FILE, {**self.scores, data_set: score})

    def _update(self, name: str, step: dict[str, Any], **fields: Any) -> None:
        record = self.record
        if not record:
            record = {"name": self.path.name, "git_commit": provenance.git_commit(), "steps": {}}
            record.update(versions=provenance.versions(), machine=provenance.machine())
        record.update({key: value for key, value in fields.items() if value is not None})
        record.setdefault("steps", {})[name] = step
        states = [each.get("state") for each in record["steps"].values()]
        record["state"] = next((state for state in (FAILED, STARTED) if state in states), FINISHED)
        write_json(self.path / RUN_FILE, record)


def now() -> str:
    """Return the time in UTC, to the second."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
