"""``lmfusion average``: one checkpoint out of several."""

from __future__ import annotations

import argparse
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "average the weights of several checkpoints of one model"
    parser = add_command(
        commands,
        "average",
        text,
        "lmfusion average runs/mine/checkpoints/checkpoint8.pt runs/mine/checkpoints/checkpoint9.pt --out averaged.pt",
    )
    parser.add_argument("checkpoints", metavar="CKPT", nargs="+", help="two checkpoints or more")
    parser.add_argument("--out", metavar="FILE", required=True, help="checkpoint to write")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion average CKPT… --out FILE``."""
    lmfusion.install()
    from lmfusion.checkpoint import rewriting as checkpoints

    checkpoints.average(args.checkpoints, args.out)
    print(f"wrote {args.out}, the average of {len(args.checkpoints)} checkpoints")
