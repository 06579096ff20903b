"""Peak memory of one side of a comparison, each in a process of its own."""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Callable

import torch
from timing import progress

FLAG = "--peak-memory-of"
STATUS = Path("/proc/self/status")
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024  # of getrusage, in bytes


def add_flags(parser: argparse.ArgumentParser) -> None:
    """Measure it or not, and what a child process is told."""
    parser.add_argument("--no-memory", action="store_true", help="leave out the peak memory, which costs some time")
    parser.add_argument(FLAG, metavar="NAME", help="only print the peak memory of one row, in bytes, as JSON")


def resident() -> int:
    """Peak of this process so far, in bytes.

    Linux hands the peak that getrusage tells on to child processes, and keeps the one of /proc for each program.
    """
    if STATUS.exists():
        lines = STATUS.read_text(encoding="ascii", errors="replace").splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:"))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * _RSS_UNIT


def print_own(run: Callable[[], object]) -> None:
    """Run, and print the peak: of a GPU's memory, or of this process's above what its libraries took before."""
    before = resident()
    run()
    peak = torch.cuda.max_memory_allocated() if torch.cuda.is_available() else resident() - before
    print(json.dumps({"peak": peak, "libraries": before}))


def peaks(script: str, arguments: list[str] | None, names: list[str], more: Sequence[str] = ()) -> dict[str, int]:
    """Bytes by name, measured by child processes.

    Args:
        script: of the benchmark.
        arguments: of this process.
        names: of the sides.
        more: further arguments, which go before others of the same name.

    Raises:
        SystemExit: if one fails; it said why.
    """
    given = sys.argv[1:] if arguments is None else arguments
    found = {}
    for number in progress(range(len(names)), "peak memory"):
        command = [sys.executable, script, *given, *more, FLAG, names[number]]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
        if done.returncode:
            what = f"the process that measures the peak memory of {names[number]} ended with status {done.returncode}"
            sys.exit(f"{what}; what it said is above. Give smaller sizes, fewer --rows, or --no-memory.")
        found[names[number]] = int(json.loads(done.stdout.splitlines()[-1])["peak"])
    return found


def shown(peak: int | None) -> str:
    """For a table."""
    return "" if peak is None else f"{peak / 1e9:.2f} GB"
