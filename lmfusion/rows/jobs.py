"""Run scripts beside each other, with their output line by line and one place for each."""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from lmfusion.child_processes import die_with_parent

INTERRUPTED = 130
GRACE = 10.0
"""Seconds that scripts have to end by themselves after Ctrl-C, which a terminal sends to them as well."""


@dataclass(frozen=True)
class Places:
    """Say where scripts may run at once.

    Attributes:
        count: number of places.
        cores: of the machine.
        gpus: of the machine; a place has one of its own.
    """

    count: int
    cores: int
    gpus: int

    @classmethod
    def here(cls, wanted: int | None) -> Places:
        """Return the places that are wanted on this machine; None: one a GPU, else one a core."""
        import torch

        gpus = torch.cuda.device_count()
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return cls(wanted or max(1, gpus or cores), cores, gpus)

    def threads(self, scripts: int) -> int:
        """Return the threads of a script where so many are to be run."""
        return max(1, self.cores // max(1, min(self.count, scripts)))


def run_all(
    scripts: Sequence[str],
    places: Places,
    command: Callable[[str], list[str]],
    environment: Mapping[str, str],
    log: Path | None = None,
) -> dict[str, int]:
    """Run scripts, as many at once as there are places.

    Args:
        scripts: their names, in order.
        places: where.
        command: the words that run a script.
        environment: of each, without its GPU.
        log: file to write the output to; None: standard output.

    Returns:
        The exit status of each script. An interruption (KeyboardInterrupt) ends those that run.
    """
    free: queue.Queue[int] = queue.Queue()
    for place in range(places.count):
        free.put(place)
    lock = threading.Lock()
    started = Started()

    def run(script: str) -> int:
        place = free.get()
        own = dict(environment)
        if places.gpus:
            own["CUDA_VISIBLE_DEVICES"] = str(place % places.gpus)
        try:
            return _run(command(script), own, lock, log, started)
        finally:
            free.put(place)

    with ThreadPoolExecutor(places.count) as pool:
        try:
            return dict(zip(scripts, pool.map(run, scripts)))
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            started.end()
            raise


class Started:
    """Holds the scripts that were started, to end them where an interruption reaches this process alone."""

    def __init__(self) -> None:
        self._processes: list[subprocess.Popen[str]] = []
        self._over = threading.Event()

    def add(self, process: subprocess.Popen[str]) -> None:
        """Take a script that was just started; one that comes after the end is ended."""
        self._processes.append(process)
        if self._over.is_set():
            process.terminate()

    def end(self) -> None:
        """End scripts that do not end by themselves; ``kill -INT`` does not reach them, and they would go on."""
        last = time.monotonic() + GRACE
        try:
            with suppress(subprocess.TimeoutExpired):
                for process in list(self._processes):
                    process.wait(max(0.0, last - time.monotonic()))
        finally:
            self._over.set()
            for process in list(self._processes):
                process.terminate()


def _run(
    words: list[str],
    environment: dict[str, str],
    lock: threading.Lock,
    log: Path | None,
    started: Started,
) -> int:
    with subprocess.Popen(
        words,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        preexec_fn=die_with_parent(),
        text=True,
        encoding="utf-8",
        errors="replace",
    ) as process:
        started.add(process)
        assert process.stdout is not None
        for line in process.stdout:
            with lock:
                if log is None:
                    print(line, end="", flush=True, file=sys.stdout)
                else:
                    with log.open("a", encoding="utf-8") as stream:
                        stream.write(line)
    return process.returncode
