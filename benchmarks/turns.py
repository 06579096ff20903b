"""Trainings in processes of their own that take turns, an epoch each."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

from steps import Training
from timing import progress, seconds

Name = TypeVar("Name")


def serve(training: Training, also: Callable[[], list[int]] = list) -> None:
    """Make an epoch whenever a line comes in; print its seconds, its target tokens and what `also` returns."""
    for _ in sys.stdin:
        print(json.dumps([seconds(training.epoch), training.tokens, *also()]), flush=True)


@contextmanager
def started(command: list[str], environment: dict[str, str] | None = None) -> Iterator[subprocess.Popen[str]]:
    """A process that ends with the block."""
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, **pipes)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def ask(process: subprocess.Popen[str]) -> list[Any]:
    """What a worker says of an epoch, as a list: its seconds, its target tokens, and so on.

    Raises:
        SystemExit: if it ended; it said why.
    """
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    if not answer:
        sys.exit(f"a training process ended with status {process.wait()}; what it said is above.")
    return list(json.loads(answer))


def take_turns(workers: Mapping[Name, subprocess.Popen[str]], rounds: int, label: str) -> dict[Name, list[list[Any]]]:
    """Return what each worker says of its epochs, in turns; a first one, which warms up, is left out."""
    said: dict[Name, list[list[Any]]] = {name: [] for name in workers}
    for number in progress(range(rounds + 1), label):
        for name, worker in workers.items():
            answer = ask(worker)
            if number:
                said[name].append(answer)
    return said
