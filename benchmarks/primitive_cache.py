"""Memory and time of --cpu-bf16 by how many products oneDNN keeps: a training whose batches differ in shape.

    lmfusion bench primitive_cache [--capacity N …] [--size small|big] [--channels N] [--tokens N] [--batches N]
        [--rounds N] [--threads N] [--json FILE]

oneDNN compiles code for each shape of a matrix product in bf16 and keeps the last 1,024 of them, with what they need.
Batches of a training have hundreds of shapes, in a dozen products each. The baseline's training steps run in one
process for each capacity, and these take turns; the first one named is what the others are compared with. `lmfusion` is
what --cpu-bf16 sets. Memory is what a process has at its peak, without what its libraries took before.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
from contextlib import ExitStack

from memory import resident, shown
from options import AUTOCAST, flags, parse
from results import Table, report
from rows import BASELINE, ROWS
from steps import Sample, Training, pairs
from timing import Spread
from training import CRITERION, DROPOUT
from turns import serve, started, take_turns

from lmfusion.lm.precision import KEPT_PRODUCTS, PRIMITIVE_CACHE

ONEDNNS_OWN = 1024
LENGTHS = (6, 80)  # tokens of a batch's longest sentence


def batches(args: argparse.Namespace) -> list[Sample]:
    """Return batches of about as many tokens, of sentences of many lengths, the same for every process."""
    generator = random.Random(1)
    lengths = [generator.randint(*LENGTHS) for _ in range(args.batches)]
    return [pairs(max(1, args.tokens // length), args.sizes, seed, length) for seed, length in enumerate(lengths)]


def work(args: argparse.Namespace) -> None:
    """Make an epoch whenever a line comes in; print its seconds, its target tokens and the peak of memory in bytes."""
    row = next(row for row in ROWS if row.name == BASELINE)
    samples = batches(args)
    training = Training(row.build(args.sizes, dropout=DROPOUT), samples, args, CRITERION)
    before = resident()
    serve(training, also=lambda: [resident() - before])


def measure(args: argparse.Namespace) -> dict[int, tuple[Spread, int, int]]:
    """Return seconds of an epoch, its target tokens, and bytes, by capacity."""
    with ExitStack() as stack:
        command = [sys.executable, __file__, *args.given, "--worker"]
        workers = {
            capacity: stack.enter_context(started(command, {**os.environ, PRIMITIVE_CACHE: str(capacity)}))
            for capacity in args.capacity
        }
        said = take_turns(workers, args.rounds, "epochs")
    return {capacity: (Spread([taken for taken, *_ in told]), *told[-1][1:]) for capacity, told in said.items()}


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=3)
    kept = [ONEDNNS_OWN, KEPT_PRODUCTS]
    parser.add_argument("--capacity", type=int, nargs="+", default=kept, help="products to keep (1024 and lmfusion's)")
    parser.add_argument("--tokens", type=int, default=1500, help="padded target tokens of a batch (1500)")
    parser.add_argument("--batches", type=int, default=100, help="of an epoch, each of another shape (100)")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.set_defaults(precision=AUTOCAST)
    args = parse(parser, arguments)
    if args.worker:
        work(args)
        return
    found = measure(args)
    first, _, most = found[args.capacity[0]]
    columns = ["products kept", "target tokens/s", "times as fast", "peak memory", "of the first's"]
    table = Table(f"Training, {args.models}, {args.precision}, {args.batches} shapes of {args.tokens} tokens", columns)
    for capacity, (time, tokens, peak) in found.items():
        name = f"{capacity:,}" + (" (lmfusion)" if capacity == KEPT_PRODUCTS else "")
        table.rows.append([name, time.rate(tokens), first.over(time).ratio(), shown(peak), f"{peak / most:.2f}"])
    report("primitive_cache", args, [table], seconds={str(capacity): time for capacity, (time, *_) in found.items()})


if __name__ == "__main__":
    main()
