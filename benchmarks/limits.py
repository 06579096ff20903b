"""The arithmetic limits of the strategies in training, counted on the paper's models; nothing is timed.

    lmfusion bench limits [--size small|big] [--tokens N] [--json FILE]

The ratio of the floating-point operations of a row's forward and backward passes to the baseline's.
"""

from __future__ import annotations

import argparse

import torch
from counting import Uninitialized, operations
from options import flags, parse
from results import Table, report
from rows import BASELINE, ROWS, Row
from steps import pairs
from training import CRITERION, Training


def count(row: Row, args: argparse.Namespace) -> int:
    """Operations of a row's step on one sentence pair, without memory for more than one gradient at a time."""
    with Uninitialized():
        model = row.build(args.sizes)
    for parameter in model.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(_forget)
    sample = pairs(1, args.sizes, seed=0, longest=args.tokens, shortest=args.tokens)
    training = Training(model, [sample], args, CRITERION)
    return operations(lambda: training.loss(training.samples[0]).backward())


def _forget(parameter: torch.Tensor) -> None:
    parameter.grad = None


def main(arguments: list[str] | None = None) -> None:
    """Prints the table."""
    parser = flags(__doc__, rounds=0)
    parser.set_defaults(size="big")
    parser.add_argument("--tokens", type=int, default=30, help="of each sentence (30)")
    args = parse(parser, arguments)
    found = {row.name: count(row, args) for row in ROWS}
    rows = [
        [name, f"{number / args.tokens / 1e9:.2f}", f"{number / found[BASELINE]:.2f}×"]
        for name, number in found.items()
    ]
    title = f"Operations of training, {args.models}, sentences of {args.tokens} tokens"
    table = Table(title, ["", "GFLOP a token", "arithmetic limit"], rows)
    report("limits", args, [table], operations=found)


if __name__ == "__main__":
    main()
