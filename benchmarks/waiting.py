"""What it costs and gains that threads which wait give their core away: training beside busy neighbours and alone.

    lmfusion bench waiting [--size small|big] [--threads N] [--neighbours 0 1 …] [--tokens N] [--json FILE]

The baseline's training steps in two processes that take turns: one with OMP_WAIT_POLICY=PASSIVE, as lmfusion's commands
and recipes set it, one with OpenMP's default, whose threads spin for some milliseconds. A neighbour is a process that
computes without a pause on any core. With one thread nobody waits, and both are the same.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from options import flags, parse
from results import Table, report
from rows import BASELINE, ROWS
from steps import LONGEST, Training, pairs
from timing import Spread, progress, seconds
from training import CRITERION, DROPOUT

from lmfusion.runs.threads import OF_USERS, WAIT_POLICY

DEFAULT, PASSIVE = "spinning", "sleeping"
COLUMNS = ["busy neighbours", f"{DEFAULT}, target tokens/s", f"{PASSIVE}, target tokens/s", f"{PASSIVE} / {DEFAULT}"]


def work(args: argparse.Namespace) -> None:
    """Make an epoch whenever a line comes in; print its seconds and its target tokens."""
    row = next(row for row in ROWS if row.name == BASELINE)
    samples = [pairs(max(1, args.tokens // LONGEST), args.sizes, seed=0)]
    training = Training(row.build(args.sizes, dropout=DROPOUT), samples, args, CRITERION)
    for _ in sys.stdin:
        print(json.dumps([seconds(training.epoch), training.tokens]), flush=True)


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


def measure(neighbours: int, args: argparse.Namespace) -> tuple[dict[str, Spread], int]:
    """Seconds of both sides' epochs beside so many neighbours, and target tokens of an epoch."""
    plain = {name: value for name, value in os.environ.items() if name not in OF_USERS}
    environments = {DEFAULT: plain, PASSIVE: {**plain, WAIT_POLICY: "PASSIVE"}}
    taken: dict[str, list[float]] = {name: [] for name in environments}
    tokens = 0
    with ExitStack() as stack:
        command = [sys.executable, __file__, *args.given, "--worker"]
        workers = {name: stack.enter_context(started(command, given)) for name, given in environments.items()}
        for worker in workers.values():
            ask(worker)  # loaded and warm before neighbours disturb
        for _ in range(neighbours):
            stack.enter_context(started([sys.executable, "-c", "while True: pass"]))
        for number in progress(range(args.rounds + 1), f"{neighbours} neighbours"):
            for name, worker in workers.items():
                value, tokens = ask(worker)
                if number:
                    taken[name].append(value)
    return {name: Spread(values) for name, values in taken.items()}, tokens


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=7)
    parser.add_argument("--tokens", type=int, default=1080, help="padded target tokens of a batch (1080)")
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1], help="busy processes beside (0 and 1)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    args = parse(parser, arguments)
    if args.worker:
        work(args)
        return
    found, table = {}, Table(f"Training, {args.models}, {args.precision}, {args.threads} threads", COLUMNS)
    for neighbours in args.neighbours:
        time, tokens = measure(neighbours, args)
        found[neighbours] = time
        ratio = time[DEFAULT].over(time[PASSIVE])  # of speeds
        table.rows.append([str(neighbours), *(time[name].rate(tokens) for name in (DEFAULT, PASSIVE)), ratio.ratio()])
    report("waiting", args, [table], seconds=found)


if __name__ == "__main__":
    main()
