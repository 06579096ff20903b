"""What the strategies cost in training: target tokens/s, the ratio to the baseline beside its arithmetic limit, memory.

    lmfusion bench training [--size small|big] [--tokens N] [--rounds N] [--precision P] [--rows NAME…] [--json FILE]

A step is forward, backward and Adam's update on made-up sentences of 20 to 36 tokens. The limit is the ratio of
floating-point operations that PyTorch counts in the forward and backward passes. "stored" is SRC-ELMO from the second
epoch on with --src-lm-cache; its peak memory is of the first, which computes and stores the states. "fairseq
transformer" is fairseq's own model of the baseline's shape; it knows no chunked criterion. "baseline, fp32" stands
beside rows in another precision. All rows are in one process; on a GPU too small for that choose some by --rows.
"""

from __future__ import annotations

import argparse
import tempfile
from typing import Any

import memory
from options import FP32, flags, parse
from results import Table, report
from rows import BASELINE, ROWS, FairseqRow, Row, check_names
from steps import LONGEST, Training, pairs
from timing import Spread, alternate

from lmfusion.fusion.config import ELMO

BATCHES = 3
CRITERION, CHUNKED = "label_smoothed_cross_entropy", "chunked_"
STORED = Row("SRC-ELMO, stored", src=ELMO)
FAIRSEQ = FairseqRow("fairseq transformer")
IN_FP32 = Row(f"{BASELINE}, fp32")
DROPOUT = 0.1
COLUMNS = ["", "target tokens/s", "time / baseline", "arithmetic limit", "time / limit", "peak memory"]


def known(args: argparse.Namespace) -> list[Row]:
    """The rows that there are with these flags."""
    rows = [*ROWS, STORED]
    rows += [] if args.criterion.startswith(CHUNKED) else [FAIRSEQ]
    return rows + ([] if args.precision == FP32 else [IN_FP32])


def chosen(args: argparse.Namespace) -> list[Row]:
    """The rows asked for, the baseline first."""
    return [row for row in known(args) if not args.rows or row.name in {BASELINE, *args.rows}]


def start(row: Row, args: argparse.Namespace, cache: str) -> Training:
    """A row in training."""
    if row is IN_FP32:
        args = argparse.Namespace(**{**vars(args), "precision": FP32})
    flags: dict[str, Any] = {"dropout": DROPOUT}
    if row is STORED:
        flags["src_lm_cache"] = cache
    samples = [pairs(max(1, args.tokens // LONGEST), args.sizes, seed) for seed in range(BATCHES)]
    return Training(row.build(args.sizes, **flags), samples, args, args.criterion)


def ratio_table(
    title: str, tokens: int, time: dict[str, Spread], operations: dict[str, int], peaks: dict[str, int]
) -> Table:
    """Rates and ratios of what was timed, beside the limits that counting gives; tokens are of each run."""
    table = Table(title, COLUMNS)
    for name, spread in time.items():
        ratio, limit = spread.over(time[BASELINE]), operations[name] / operations[BASELINE]
        line = [spread.rate(tokens), ratio.ratio(), f"{limit:.2f}×", f"{ratio.median / limit:.2f}"]
        table.rows.append([name, *line, memory.shown(peaks.get(name))])
    return table


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=5)
    parser.add_argument("--tokens", type=int, default=1500, help="padded target tokens of a batch (1500)")
    parser.add_argument("--rows", nargs="+", metavar="NAME", help="only these, beside the baseline")
    text = f"that all rows are trained by, such as {CHUNKED}{CRITERION} ({CRITERION})"
    parser.add_argument("--criterion", default=CRITERION, help=text)
    memory.add_flags(parser)
    args = parse(parser, arguments)
    check_names(parser, args.rows, [row.name for row in known(args)])
    rows = chosen(args)
    with tempfile.TemporaryDirectory() as cache:
        if args.peak_memory_of:
            row = next(row for row in rows if row.name == args.peak_memory_of)
            memory.print_own(lambda: start(row, args, cache).epoch())
            return
        names = [row.name for row in rows]
        peaks = {} if args.no_memory else memory.peaks(__file__, arguments, names)
        running = {row.name: start(row, args, cache) for row in rows}
        operations = {name: training.operations() for name, training in running.items()}
        time = alternate({name: training.epoch for name, training in running.items()}, args.rounds)
    tokens = running[BASELINE].tokens
    chunked = ", logits in chunks" if args.criterion.startswith(CHUNKED) else ""
    title = f"Training, {args.models}, {args.precision}, batches of {args.tokens} tokens{chunked}"
    table = ratio_table(title, tokens, time, operations, peaks)
    report("training", args, [table], tokens=tokens, seconds=time, operations=operations, peak_bytes=peaks)


if __name__ == "__main__":
    main()
