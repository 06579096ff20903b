"""Everything about one GPU in nine minutes: numbers, kernels, waits, speed, memory, and the trainer in each precision.

    lmfusion bench gpu [--minutes N] [--sections NAME…] [--tiny] [--device cuda|cpu] [--json FILE]

The figures are written after every section; what does not fit into the time is left out and named. --tiny --device cpu
rehearses all of it in a minute or two, on models whose figures mean nothing. Sections: peak (matrix products, copies),
attention (gradients of cuDNN's attention that are no numbers), states (against a CPU's in float32), rows (training
beside fairseq's transformer), chunks (of the loss), generation, precisions (fairseq's trainer), compiled.
"""

from __future__ import annotations

import argparse
import signal
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from on_gpu import decoding, exactness, machine, parts, precisions, training_rows
from on_gpu.sections import Budget, Found, Section
from options import BF16, FP32, device, flags, parse, use_device
from results import Table, report, save
from rows import Sizes

from lmfusion.errors import LMFusionError
from lmfusion.fairseq_patches.attention_backend import avoid_cudnn_attention

SECTIONS: dict[str, Section] = {
    "peak": machine.measure,
    "attention": exactness.attention_gradients,
    "states": exactness.states,
    "rows": training_rows.measure,
    "chunks": parts.chunks,
    "generation": decoding.measure,
    "precisions": precisions.measure,
    "compiled": parts.compiled,
}
SHARES = {"rows": 0.55, "chunks": 0.6, "generation": 0.75, "precisions": 0.9}
"""Of the whole time, at the end of which a section begins nothing new."""
TINY = Sizes(
    vocabulary=200,
    channels=32,
    ffn=64,
    layers=1,
    heads=2,
    lm_channels=32,
    lm_ffn=64,
    lm_layers=2,
    lm_heads=2,
)
TOKENS, SENTENCES = [2520, 8280, 33120], [1, 333]
FAILURES = (RuntimeError, ValueError, TypeError, AttributeError, LookupError, AssertionError, OSError, LMFusionError)


@contextmanager
def limited(budget: Budget) -> Iterator[None]:
    """End the block by a TimeoutError where the time is over."""

    def end(*_: Any) -> None:
        raise TimeoutError("the time is over")

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, max(0.01, budget.left()))
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def run(args: argparse.Namespace, budget: Budget) -> tuple[list[Table], dict[str, Any]]:
    """All sections, one after the other; the figures so far are written after each."""
    tables: list[Table] = []
    figures: dict[str, Any] = {"failed": {}, "ended": []}
    for name in args.sections:
        print(f"{name}: {budget.left():.0f} s left", file=sys.stderr, flush=True)
        # What is kept for the sections behind this one.
        args.reserve = 60 * args.minutes * (1 - SHARES.get(name, 0.97))
        found = Found()
        try:
            with limited(budget):
                SECTIONS[name](args, budget, found)
        except TimeoutError:
            figures["ended"].append(name)
        except FAILURES as error:
            traceback.print_exc()
            figures["failed"][name] = f"{type(error).__name__}: {error}"
        args.peak = found.figures.get("peaks", {}).get(FP32 if args.precision == FP32 else BF16, args.peak)
        tables += found.tables
        figures[name] = found.figures
        save("gpu", args, tables, figures)
    return tables, figures


def main(arguments: list[str] | None = None) -> None:
    """Prints the tables."""
    parser = flags(__doc__, rounds=3)
    parser.add_argument("--minutes", type=float, default=9.0, help="for everything (9)")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=list(SECTIONS), metavar="NAME")
    parser.add_argument("--tiny", action="store_true", help="models whose figures mean nothing")
    parser.add_argument("--device", choices=("cuda", "cpu"), default=device(), help=f"here: {device()}")
    parser.add_argument("--tokens", type=int, nargs="+", help=f"padded target tokens of a batch ({TOKENS})")
    parser.add_argument("--sentences", type=int, nargs="+", help=f"of a batch in generation ({SENTENCES})")
    parser.add_argument("--length", type=int, help="tokens of every hypothesis (30)")
    parser.add_argument("--beam", type=int, default=5)
    args = parse(parser, arguments)
    budget = Budget(args.minutes)
    if args.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device cuda: PyTorch sees no GPU here; rehearse with --tiny --device cpu.")
    use_device(args.device)
    if args.tiny:
        args.sizes, args.models = TINY, "tiny models"
    args.tokens = args.tokens or ([72, 144] if args.tiny else TOKENS)
    args.sentences = args.sentences or ([1, 3] if args.tiny else SENTENCES)
    args.length = args.length or (6 if args.tiny else 30)
    args.peak = float("nan")
    avoid_cudnn_attention()  # as fairseq's trainer does
    tables, figures = run(args, budget)
    report("gpu", args, tables, **figures)
    if figures["ended"]:
        print(f"no time was left for all of: {', '.join(figures['ended'])}", file=sys.stderr)
    if figures["failed"]:
        sys.exit(f"these sections failed, and what they said is above: {', '.join(figures['failed'])}")


if __name__ == "__main__":
    main()
