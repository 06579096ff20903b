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
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from lmfusion.errors import UserError
from lmfusion.runs import provenance

STARTED, FINISHED, FAILED = "started", "finished", "failed"
RUN_FILE, SCORES_FILE, LOCK_FILE = "run.json", "scores.json", ".lock"

_STEP: dict[str, Any] = {
    "state": str,
    "command": list,
    "seconds": (int, float),
    "attempts": int,
    "result": dict,
    "data_sha256": (dict, str, type(None)),
}

_RESULTS = ("updates", "best_valid_loss", "best_valid_perplexity", "tokens_per_second", "sentences")
_MIX: dict[str, Any] = {"side": str, "shares": dict, "gamma": (int, float)}


class RunFolder:
    """One run folder on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock: IO[str] | None = None

    @property
    def record(self) -> dict[str, Any]:
        """The content of run.json; empty before the first step."""
        return _checked(self.path / RUN_FILE, read_json(self.path / RUN_FILE))

    @property
    def scores(self) -> dict[str, Any]:
        """The content of scores.json; empty before the first score."""
        return read_json(self.path / SCORES_FILE)

    @property
    def checkpoints(self) -> Path:
        """Where fairseq keeps this run's checkpoints."""
        return self.path / "checkpoints"

    def log(self, step: str) -> Path:
        """Where a step's output goes."""
        return self.path / f"{step}.log"

    def step(self, name: str) -> dict[str, Any]:
        """The record of a step; empty if it was never started."""
        step: dict[str, Any] = self.record.get("steps", {}).get(name, {})
        return step

    def lock(self) -> int:
        """Claim the folder for this process and those that inherit the returned file descriptor.

        Raises:
            UserError: another process is at work there.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = (self.path / LOCK_FILE).open("a+", encoding="utf-8")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self._lock.seek(0)
            owner = self._lock.read().strip() or "unknown"
            raise UserError(
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
            UserError: the step was begun with another command or on other data.
        """
        hashes = provenance.hash_data(data) if data else None
        before = self.step(name)
        if before:
            self._check_same(name, "command", _without_place(before.get("command")), _without_place(command))
            self._check_same(name, "data", before.get("data_sha256"), hashes)
            if before.get("state") == FINISHED:
                return False
        step = {"seconds": 0.0, "attempts": 0, **before, "command": command, "data_sha256": hashes}
        step["launch"] = provenance.launch([*launch, *command])
        step.update(state=STARTED, attempts=step["attempts"] + 1, started_at=step.get("started_at", now()))
        self._update(name, step, seed=seed)
        return True

    def _check_same(self, name: str, what: str, before: Any, current: Any) -> None:
        if before == current:
            return
        if what == "command":
            gone = " ".join(word for word in before or [] if word not in current) or "nothing"
            new = " ".join(word for word in current if word not in (before or [])) or "nothing"
            difference = f"with other flags ({gone} then, {new} now)"
        else:
            difference = "on other data"
        raise UserError(
            f"{self.path}: its step '{name}' was begun {difference}. Choose another run folder (--out), or delete "
            f"this one; nothing was changed."
        )

    def add_seconds(self, name: str, seconds: float) -> None:
        """Count time spent on a step, so that a killed attempt counts too."""
        step = self.step(name)
        self._update(name, {**step, "seconds": round(step["seconds"] + seconds, 1)})

    def finish(self, name: str, result: dict[str, Any]) -> None:
        """Record that a step finished and what came of it."""
        self._update(name, {**self.step(name), "state": FINISHED, "finished_at": now(), "result": result})

    def fail(self, name: str, reason: str) -> None:
        """Record that a step failed; it may be begun again."""
        self._update(name, {**self.step(name), "state": FAILED, "reason": reason})

    def set_model(self, facts: dict[str, Any]) -> None:
        """Record what the trained model is, for when its checkpoints are gone."""
        write_json(self.path / RUN_FILE, {**self.record, "model": facts})

    def add_score(self, data_set: str, score: dict[str, Any]) -> None:
        """Add the scores of one data set to scores.json."""
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


def _without_place(command: list[str] | None) -> list[str]:
    """A command without the folder of the package: a clone that was moved is the same clone."""
    words = command or []
    return [word for before, word in zip(["", *words], words) if before != "--user-dir"]


def now() -> str:
    """The time, to the second, in UTC."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; empty if there is no such file.

    Raises:
        UserError: the file does not hold one.
    """
    if not path.exists():
        return {}
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: is not JSON ({error}). Was it edited? Mend it or delete the run folder.") from error
    if not isinstance(content, dict):
        raise UserError(f"{path}: holds no JSON object. Mend it or delete the run folder.")
    return content


def _checked(path: Path, record: dict[str, Any]) -> dict[str, Any]:
    """A record whose parts are of the types that this module writes, as far as they are there.

    Raises:
        UserError: naming the part that is not.
    """
    for owner, name, kind in _parts(record):
        if name in owner and (not isinstance(owner[name], kind) or isinstance(owner[name], bool)):
            raise UserError(
                f"{path}: {name} is {str(owner[name])[:40]!r}, which is never written there. Was it edited? Mend it or "
                f"delete the run folder."
            )
    return record


def _parts(record: dict[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, Any]]:
    """Owner, name and type of what a record may have."""
    yield from ((record, name, dict) for name in ("steps", "model"))
    yield from ((record, name, (dict, type(None))) for name in ("versions", "machine"))  # null: not known
    yield record, "seed", (int, type(None))
    steps, model = record.get("steps"), record.get("model")
    for step in steps.values() if isinstance(steps, dict) else []:
        yield {"step": step}, "step", dict
        if isinstance(step, dict):
            yield from ((step, name, kind) for name, kind in _STEP.items())
            yield from (({"command": word}, "command", str) for word in _listed(step, "command"))
            yield from ((step.get("result") or {}, name, (int, float, type(None))) for name in _RESULTS)
    if isinstance(model, dict):
        yield from ((model, name, list) for name in ("mixes", "language_models"))
        for mix in _listed(model, "mixes"):
            found = mix if isinstance(mix, dict) else {}
            yield from (({name: found.get(name)}, name, kind) for name, kind in _MIX.items())
        for lm in _listed(model, "language_models"):
            yield {"side": lm.get("side") if isinstance(lm, dict) else None}, "side", str


def _listed(owner: Mapping[str, Any], name: str) -> list[Any]:
    found = owner.get(name)
    return found if isinstance(found, list) else []


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Write a JSON object; the file is whole at every moment."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    partial.replace(path)
