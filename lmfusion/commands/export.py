"""``lmfusion export``: a checkpoint for passing on."""

from __future__ import annotations

import argparse
import os
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write a checkpoint without its optimizer, for passing on"
    parser = add_command(
        commands, "export", text, "lmfusion export runs/mine/checkpoints/checkpoint_best.pt --half --out small.pt"
    )
    parser.add_argument("checkpoint", metavar="CKPT", help="checkpoint file of any fairseq model")
    parser.add_argument("--out", metavar="FILE", required=True, help="checkpoint to write")
    parser.add_argument("--half", action="store_true", help="in half precision: half the size")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion export CKPT --out FILE [--half]``."""
    lmfusion.install()
    from lmfusion.checkpoint import rewriting as checkpoints

    checkpoints.export(args.checkpoint, args.out, half=args.half)
    print(f"wrote {args.out}, {os.path.getsize(args.out) / 1e6:.1f} MB")
