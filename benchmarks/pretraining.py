"""Pretraining of the language models: tokens/s and memory against a plain implementation and fairseq's transformer_lm.

    lmfusion bench pretraining [--size small|big] [--tokens N] [--rounds N] [--precision P] [--compile] [--json FILE]

"plain" computes the same model on the same weights as a textbook would (benchmarks/plain_lm.py); that both give the
same logits is checked first. fairseq's transformer_lm has as many blocks as both towers and the joining block together.
Beside the cloze LM stands a BERT of transformers, where that is installed, with as many blocks and its own loss: it
reads all words and learns from the 15% that are masked. A step is forward, backward and Adam's update on made-up
sentences of 20 to 36 tokens; lmfusion's takes its logits in chunks, the others have fairseq's or PyTorch's cross
entropy. "Of the peak" is the share of what large matrix products reach on this
machine in the same precision, measured in the same run. --compile adds lmfusion with its blocks compiled
(torch.compile, which needs a C++ compiler); what compiling takes is told and not counted.
"""

from __future__ import annotations

import argparse
import importlib.util
import time as clock
from typing import Any

import memory
import torch
from masked_bert import MaskedTraining, masked_bert
from models import SOURCE, TARGET, compile_blocks, fairseq_language_model, language_model
from options import FP32, device, flags, parse
from plain_lm import PlainLM
from results import Table, report
from steps import LONGEST, PAD, Training, sentences
from timing import alternate, seconds
from torch import nn

from lmfusion.operations import product

BATCHES, OURS, PLAIN, FAIRSEQ, BERT = 3, "lmfusion", "plain", "fairseq transformer_lm", "Hugging Face BERT"
COMPILED = "lmfusion, compiled"
CRITERION, OURS_CRITERION = "cross_entropy", "chunked_cross_entropy"
CLOZE, CAUSAL = "cloze", "causal"
COLUMNS = ["", "tokens/s", "time / lmfusion's", "operations / lmfusion's", "of the peak", "peak memory"]


def build(kind: str, name: str, args: argparse.Namespace) -> nn.Module:
    """One side of the comparison; lmfusion's and the plain one have the same weights."""
    torch.manual_seed(1)
    blocks = 2 * args.sizes.lm_layers + 1 if kind == CLOZE else args.sizes.lm_layers
    if name == BERT:
        return masked_bert(args.sizes, blocks)
    if name == FAIRSEQ:
        return fairseq_language_model(args.sizes, blocks)
    lm = language_model(SOURCE if kind == CLOZE else TARGET, args.sizes)
    if name == COMPILED:
        compile_blocks(lm, "inductor")
    return PlainLM(lm) if name == PLAIN else lm


def start(kind: str, name: str, args: argparse.Namespace) -> Training:
    """It in training."""
    count = max(1, args.tokens // LONGEST)
    samples = [sentences(count, args.sizes, seed, cloze=kind == CLOZE) for seed in range(BATCHES)]
    if name == BERT:
        return MaskedTraining(build(kind, name, args), samples, args)
    training = Training(
        build(kind, name, args), samples, args, args.criterion if name in (OURS, COMPILED) else CRITERION
    )
    if name == COMPILED:
        began = clock.monotonic()
        training.epoch()
        print(f"{kind} LM: the blocks were compiled in {clock.monotonic() - began:.0f} s, one epoch included")
    return training


def sides_of(kind: str, args: argparse.Namespace) -> list[str]:
    """What is compared with each other: for a cloze LM also BERT, where transformers is installed."""
    known = [OURS, *([COMPILED] if args.compile else []), PLAIN, FAIRSEQ]
    if kind != CLOZE:
        return known
    if importlib.util.find_spec("transformers") is None:
        print("Hugging Face BERT is left out: transformers is not installed (pip install 'lmfusion[hf]')")
        return known
    return [*known, BERT]


@torch.no_grad()
def check_equal(kind: str, args: argparse.Namespace) -> float:
    """Largest difference of the logits of lmfusion and the plain implementation at words, in fp32; they are of order 1.

    Raises:
        RuntimeError: if they are different models.
    """
    tokens = sentences(4, args.sizes, 0, cloze=kind == CLOZE)["net_input"]["src_tokens"].to(device())
    ours, plain = (build(kind, name, args).to(device()).eval()(tokens)[0] for name in (OURS, PLAIN))
    difference = float((ours - plain)[tokens.ne(PAD)].abs().max())
    if difference > 1e-3:
        raise RuntimeError(f"the plain implementation is another model: logits differ by {difference}")
    return difference


def matrix_peak(args: argparse.Namespace) -> float:
    """Floating-point operations per second of a large matrix product in the precision that is measured, by the faster
    of PyTorch's libraries, which lmfusion takes."""
    size, times = (8192, 20) if device() == "cuda" else (2048, 1)
    dtype = torch.float32 if args.precision == FP32 else torch.bfloat16
    left, right = (torch.randn(size, size, device=device()).to(dtype) for _ in range(2))

    def products() -> None:
        for _ in range(times):
            product(left, right)

    return 2 * times * size**3 / min(seconds(products) for _ in range(6))


def measure(kind: str, args: argparse.Namespace, arguments: list[str] | None) -> tuple[Table, dict[str, Any]]:
    """All sides of one kind of language model."""
    sides = sides_of(kind, args)
    peaks = {} if args.no_memory else memory.peaks(__file__, arguments, [f"{kind} {name}" for name in sides])
    difference = check_equal(kind, args)
    print(f"{kind} LM: logits of lmfusion and the plain implementation differ by at most {difference:.1e} in fp32")
    running = {name: start(kind, name, args) for name in sides}
    tokens, peak = running[OURS].tokens, matrix_peak(args)
    operations = {name: training.operations() for name, training in running.items()}
    time = alternate({name: training.epoch for name, training in running.items()}, args.rounds, kind)
    table = Table(f"Pretraining, {kind} LM, {args.models}, {args.precision}, batches of {args.tokens} tokens", COLUMNS)
    for name, spread in time.items():
        more = f"{operations[name] / operations[OURS]:.2f}×"
        share = f"{100 * operations[name] / spread.median / peak:.0f}%"
        ratio = spread.over(time[OURS]).ratio()
        table.rows.append([name, spread.rate(tokens), ratio, more, share, memory.shown(peaks.get(f"{kind} {name}"))])
    figures = {"tokens": tokens, "seconds": time, "operations": operations, "peak_bytes": peaks}
    return table, {**figures, "logits_differ": difference, "matrix_peak": peak}


def main(arguments: list[str] | None = None) -> None:
    """Prints a table for each language model."""
    parser = flags(__doc__, rounds=5)
    parser.add_argument("--tokens", type=int, default=1500, help="padded tokens of a batch (1500)")
    parser.add_argument("--kinds", nargs="+", choices=(CLOZE, CAUSAL), default=[CLOZE, CAUSAL])
    parser.add_argument("--criterion", default=OURS_CRITERION, help=f"of lmfusion's side ({OURS_CRITERION})")
    parser.add_argument("--compile", action="store_true", help="lmfusion with compiled blocks as well")
    memory.add_flags(parser)
    args = parse(parser, arguments)
    if args.peak_memory_of:
        kind, _, name = args.peak_memory_of.partition(" ")
        memory.print_own(lambda: start(kind, name, args).epoch())
        return
    found = {kind: measure(kind, args, arguments) for kind in args.kinds}
    figures = {kind: figures for kind, (_, figures) in found.items()}
    report("pretraining", args, [table for table, _ in found.values()], **figures)


if __name__ == "__main__":
    main()
