"""``lmfusion export``: a checkpoint for passing on."""

from __future__ import annotations

import argparse
import logging
import os
import shlex
from pathlib import Path
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command, add_user_dir
from lmfusion.errors import InputError


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write a checkpoint without its optimizer, for passing on"
    parser = add_command(
        commands,
        "export",
        text,
        "lmfusion export runs/mine/baseline --half --out small.pt",
        "lmfusion export runs/mine/baseline --ctranslate2 fast",
    )
    parser.add_argument("checkpoint", metavar="CKPT", help="checkpoint of any fairseq model, or a run's folder")
    kinds = parser.add_mutually_exclusive_group(required=True)
    kinds.add_argument("--out", metavar="FILE", help="checkpoint to write")
    kinds.add_argument(
        "--ctranslate2",
        metavar="DIR",
        help="write a folder of CTranslate2, of a translation model without an LM inside",
    )
    parser.add_argument("--half", action="store_true", help="in half precision: half the size")
    add_user_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion export CKPT --out FILE [--half]`` or ``--ctranslate2 DIR``."""
    lmfusion.install()
    if args.ctranslate2 is not None:
        from lmfusion.inference import ctranslate

        if args.half:
            raise InputError("--half is for --out FILE: a folder of CTranslate2 is translated in 8-bit by --int8.")
        for name in ("fairseq", "lmfusion"):
            logging.getLogger(name).setLevel(logging.WARNING)
        ctranslate.export(args.checkpoint, args.ctranslate2)
        print(f"wrote {args.ctranslate2}; lmfusion translate {shlex.quote(str(args.ctranslate2))} [--int8]")
        return
    from lmfusion.checkpoint import rewriting as checkpoints
    from lmfusion.checkpoint.finding import find_checkpoint

    checkpoints.export(find_checkpoint(Path(args.checkpoint)), args.out, half=args.half)
    print(f"wrote {args.out}, {os.path.getsize(args.out) / 1e6:.1f} MB")
