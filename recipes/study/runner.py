"""Runs jobs, so many at a time, in their order; continues after a failed one and without those that need it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lmfusion.runs.live import die_with_parent
from lmfusion.runs.live_line import LiveLine, clock
from lmfusion.runs.log_tail import last_words
from study.estimate import Clock, in_words
from study.plan import Job

POLL = 0.2


@dataclass(frozen=True)
class Start:
    """How a job is started, now that what it needs is there."""

    command: Sequence[str]
    settings: Mapping[str, str]
    log: Path
    is_done: Callable[[], bool]
    """Whether it left what it is for."""
    result: Callable[[], str]
    """What came of it, in a few words."""
    spent: float = 0.0
    """Seconds that earlier attempts have spent on the work that it resumes."""


@dataclass
class _Running:
    start: Start
    process: subprocess.Popen[bytes]
    since: float
    """When it would have begun had it never been stopped, by the monotonic clock."""


@dataclass
class Runner:
    """Jobs and what became of them."""

    jobs: Sequence[Job]
    prepare: Callable[[Job], Start]
    at_a_time: int
    clock: Clock
    line: LiveLine
    done: list[Job] = field(default_factory=list)
    failed: dict[Job, str] = field(default_factory=dict)
    """Job -> why."""
    _waiting: list[Job] = field(default_factory=list)
    _running: dict[Job, _Running] = field(default_factory=dict)

    def run(self) -> None:
        """Until nothing is left that can be run; ends its processes when it is interrupted itself."""
        self._waiting = list(self.jobs)
        try:
            while self._waiting or self._running:
                self._start_what_can()
                self._collect()
                self._show()
                if self._running:
                    time.sleep(POLL)
        finally:
            for running in self._running.values():
                running.process.terminate()
            for running in self._running.values():
                running.process.wait()

    def _start_what_can(self) -> None:
        for job in list(self._waiting):
            lacking = [need for need in job.needs if need in self.failed]
            if lacking:
                self._waiting.remove(job)
                self._fail(job, f"not run, for it needs: {lacking[0].name}")
            elif all(need in self.done for need in job.needs):
                start = self.prepare(job)
                if start.is_done():
                    self._waiting.remove(job)
                    self._finish(job, f"finished before ({start.result()})")
                elif len(self._running) < self.at_a_time:
                    self._waiting.remove(job)
                    self._running[job] = self._launch(start)
                else:
                    return

    def _launch(self, start: Start) -> _Running:
        start.log.parent.mkdir(parents=True, exist_ok=True)
        with start.log.open("ab") as log:
            process = subprocess.Popen(
                start.command,
                env={**os.environ, "OMP_NUM_THREADS": "1", **start.settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(),  # and in the same process group, to be stopped and continued with it
            )
        return _Running(start, process, time.monotonic() - start.spent)

    def _collect(self) -> None:
        for job, running in list(self._running.items()):
            status = running.process.poll()
            if status is None:
                continue
            del self._running[job]
            taken = time.monotonic() - running.since
            if status == 0 and running.start.is_done():
                self.clock.finished(job, taken)
                self._finish(job, f"{running.start.result()}, {clock(taken)}")
            else:
                self._fail(job, _why(status, running.start.log))

    def _finish(self, job: Job, words: str) -> None:
        self.done.append(job)
        self._keep(job, words)

    def _fail(self, job: Job, reason: str) -> None:
        self.failed[job] = reason
        self._keep(job, f"FAILED: {reason}")

    def _keep(self, job: Job, words: str) -> None:
        number = len(self.done) + len(self.failed)
        self.line.keep(f"[{number}/{len(self.jobs)}] {job.name}: {words}")

    def _show(self) -> None:
        now = time.monotonic()
        if not self._running:
            return
        left = self.clock.left(self._waiting, {job: now - each.since for job, each in self._running.items()})
        names = "; ".join(job.name for job in self._running)
        finished = len(self.done) + len(self.failed)
        self.line.show(f"{finished}/{len(self.jobs)} done, {in_words(left)} left. Running: {names}")


def _why(status: int, log: Path) -> str:
    if status == 0:
        how = "it ended well, but left no result"
    else:
        how = f"ended by {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
    return f"{how}. Its last words:\n{last_words(log, 0)}\n  All of it: {log}"
