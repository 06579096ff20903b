"""What it costs and gains that threads which wait give their core away: training beside busy neighbours and alone.

    lmfusion bench waiting [--size small|big] [--threads N] [--neighbours 0 1 …] [--tokens N] [--json FILE]

The baseline's training steps in two processes that take turns: one with OMP_WAIT_POLICY=PASSIVE, as lmfusion's commands
and recipes set it, one with OpenMP's default, whose threads spin for some milliseconds. A neighbour is a process that
computes without a pause on any core. With one thread nobody waits, and both are the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import ExitStack

from options import flags, parse
from results import Table, report
from rows import BASELINE, ROWS
from steps import LONGEST, Training, pairs
from timing import Spread
from training import CRITERION, DROPOUT
from turns import ask, serve, started, take_turns

from lmfusion.runs.threads import OF_USERS, WAIT_POLICY

DEFAULT, PASSIVE = "spinning", "sleeping"
COLUMNS = ["busy neighbours", f"{DEFAULT}, target tokens/s", f"{PASSIVE}, target tokens/s", f"{PASSIVE} / {DEFAULT}"]


def work(args: argparse.Namespace) -> None:
    """Make an epoch whenever a line comes in; print its seconds and its target tokens."""
    row = next(row for row in ROWS if row.name == BASELINE)
    samples = [pairs(max(1, args.tokens // LONGEST), args.sizes, seed=0)]
    training = Training(row.build(args.sizes, dropout=DROPOUT), samples, args, CRITERION)
    serve(training)


def measure(neighbours: int, args: argparse.Namespace) -> tuple[dict[str, Spread], int]:
    """Seconds of both sides' epochs beside so many neighbours, and target tokens of an epoch."""
    plain = {name: value for name, value in os.environ.items() if name not in OF_USERS}
    environments = {DEFAULT: plain, PASSIVE: {**plain, WAIT_POLICY: "PASSIVE"}}
    with ExitStack() as stack:
        command = [sys.executable, __file__, *args.given, "--worker"]
        workers = {name: stack.enter_context(started(command, given)) for name, given in environments.items()}
        for worker in workers.values():
            ask(worker)  # loaded and warm before neighbours disturb
        for _ in range(neighbours):
            stack.enter_context(started([sys.executable, "-c", "while True: pass"]))
        said = take_turns(workers, args.rounds, f"{neighbours} neighbours")
    tokens = said[DEFAULT][-1][1]
    return {name: Spread([taken for taken, _ in answers]) for name, answers in said.items()}, tokens


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
