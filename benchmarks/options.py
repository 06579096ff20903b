"""Flags that the benchmarks share, and what they mean."""

from __future__ import annotations

import argparse
import logging
import sys
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rows import SIZES

FP32, BF16, AUTOCAST = "fp32", "bf16", "autocast"
OVERRIDES = {"vocabulary": "types", "channels": "channels", "layers": "blocks", "lm_layers": "LM blocks"}
HEAD = 64  # channels of an attention head where --channels is given, as in the paper's models


_chosen: dict[str, str] = {}


def device() -> str:
    """A GPU where there is one, unless another device was chosen."""
    return _chosen.get("device") or ("cuda" if torch.cuda.is_available() else "cpu")


def use_device(name: str) -> None:
    """Make :func:`device` this one in this process."""
    _chosen["device"] = name


def flags(description: str | None, *, rounds: int, sized: bool = True) -> argparse.ArgumentParser:
    """A parser with the flags of every benchmark.

    Args:
        description: the module's docstring.
        rounds: how many are timed by default.
        sized: whether the models' sizes and precision can be chosen.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    if sized:
        size = "big" if torch.cuda.is_available() else "small"
        text = "the paper's models, or the same with a quarter of the channels and a fifth of the words"
        parser.add_argument("--size", choices=SIZES, default=size, help=f"{text} (here: %(default)s)")
        for name, words in OVERRIDES.items():
            parser.add_argument(f"--{name.replace('_', '-')}", type=int, help=f"another number of {words}")
        precision = BF16 if torch.cuda.is_available() else FP32
        parser.add_argument(
            "--precision",
            choices=(FP32, BF16, AUTOCAST),
            default=precision,
            help="of all sides: weights in fp32 or bf16, or fp32 with autocast to bf16, which is what --cpu-bf16 of "
            "training does on a CPU (here: %(default)s)",
        )
    parser.add_argument("--rounds", type=int, default=rounds, help=f"timed ones, after one that is not ({rounds})")
    parser.add_argument("--threads", type=int, default=torch.get_num_threads(), help="on a CPU (default: all)")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    return parser


def parse(parser: argparse.ArgumentParser, arguments: list[str] | None) -> Any:
    """The flags' values; ``sizes`` are the models', in words ``models``. Threads are set."""
    args = parser.parse_args(arguments)
    args.given = sys.argv[1:] if arguments is None else arguments
    torch.set_num_threads(args.threads)
    # fairseq gives its padding mask as booleans and its causal mask as numbers; torch says so at every start.
    warnings.filterwarnings("ignore", message="Support for mismatched key_padding_mask")
    for name in ("lmfusion", "fairseq", "matplotlib", "hydra"):
        logging.getLogger(name).setLevel(logging.WARNING)
    if not hasattr(args, "size"):
        return args
    args.sizes = SIZES[args.size]
    changed = [f"{getattr(args, name)} {words}" for name, words in OVERRIDES.items() if getattr(args, name) is not None]
    args.models = f"{args.size} models" + (f" with {', '.join(changed)}" if changed else "")
    for name in ("vocabulary", "layers", "lm_layers"):
        if getattr(args, name) is not None:
            args.sizes = replace(args.sizes, **{name: getattr(args, name)})
    if args.channels is not None:
        channels, ffn, heads = args.channels, 4 * args.channels, max(1, args.channels // HEAD)
        args.sizes = replace(args.sizes, channels=channels, ffn=ffn, heads=heads)
        args.sizes = replace(args.sizes, lm_channels=channels, lm_ffn=ffn, lm_heads=heads)
    return args


def autocast(args: argparse.Namespace) -> AbstractContextManager[Any]:
    """For the forward pass."""
    return torch.autocast(device(), torch.bfloat16) if args.precision == AUTOCAST else nullcontext()
