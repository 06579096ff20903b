"""How long an update of each script takes, measured over its first ones."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from lmfusion.rows import plan

UPDATES = 30
"""That are measured; fairseq logs every tenth."""
SLOWEST = 200.0
"""Seconds of an update from which on fairseq rounds its updates a second to 0."""
_SPEED = re.compile(r'"ups": "([0-9.]+)"')


def measure(
    stages: Sequence[Sequence[str]],
    minutes: float,
    jobs: int,
    run: Callable[[Sequence[str], int], None],
    folder: Callable[[str], Path],
) -> dict[str, float]:
    """Run scripts for a few updates, and no more of them once it is known that the minutes are too few.

    Args:
        stages: names of scripts, those of a stage after those of the one before.
        minutes: for everything, this included.
        jobs: that run beside each other.
        run: runs scripts of a stage that has so many.
        folder: the run folder that a script fills.

    Returns:
        Seconds of an update by script.

    Raises:
        InputError: the scripts measured so far do not fit into the minutes, whatever the others take.
    """
    began, found = time.monotonic(), dict[str, float]()
    for stage in stages:
        for start in range(0, len(stage), jobs):
            together = stage[start : start + jobs]
            print(f"Measuring the speed of {', '.join(together)}: {UPDATES} updates each", flush=True)
            run(together, len(stage))
            found |= {script: _seconds((folder(script) / "train.log").read_text("utf-8")) for script in together}
            plan.check_minutes(minutes, (time.monotonic() - began) / 60, found, jobs)
    return found


def _seconds(log: str) -> float:
    """Return the seconds of an update by a training log, without the first ones."""
    speeds = [float(each) for each in _SPEED.findall(log) if float(each) > 0]
    if not speeds:
        return SLOWEST
    return 1 / (sum(speeds[1:]) / len(speeds[1:]) if speeds[1:] else speeds[0])
