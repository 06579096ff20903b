"""Parts of a step with other settings: the size of the loss's chunks, and compiled blocks."""

from __future__ import annotations

import argparse
from typing import Any, Callable

import memory
import torch
import torch.nn.functional as F
from chunked_loss import FAIRSEQ, TORCH, Step
from models import SOURCE, compile_blocks, language_model
from options import AUTOCAST, device
from results import Table
from steps import LONGEST, Training, sentences
from timing import alternate

from on_gpu.sections import Budget, Found, Memory, drawn, free

SIZES = (24, 64, 128, 256, 512, 1024)  # MiB of a chunk's logits in float32
SECONDS_TO_COMPILE = 90


def chunks(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Loss and gradients over the vocabulary: fairseq's on all logits, ours by the size of a chunk, and PyTorch's."""
    sizes, tokens = args.sizes, max(args.tokens)
    setting = (sizes.vocabulary, sizes.channels, tokens, args.precision)
    table = Table(
        "Loss and gradients of {:,} types, {} channels, {:,} tokens, {}".format(*setting),
        ["", "ms", "time / fairseq's", "peak memory"],
    )
    steps, peaks = {}, {}
    for name in [FAIRSEQ, *(f"{size} MiB" for size in SIZES), *([TORCH] if has_pytorchs(args) else [])]:
        before = Memory()
        steps[name] = _step(name, setting)
        steps[name]()
        peaks[name] = before.peak()
        free()
    time_of = alternate(steps, args.rounds, "chunks")
    for name, spread in time_of.items():
        ratio = spread.over(time_of[FAIRSEQ]).ratio()
        table.rows.append([name, f"{1000 * spread.median:.2f}", ratio, memory.shown(peaks[name])])
    found.tables.append(table)
    found.figures.update(seconds=time_of, peak_bytes=peaks, setting=setting)


def has_pytorchs(args: argparse.Namespace) -> bool:
    """Whether PyTorch has a loss in chunks for this."""
    return hasattr(F, "linear_cross_entropy") and args.precision != AUTOCAST


def _step(name: str, setting: Any) -> Callable[[], object]:
    """Loss and gradients without label smoothing, which PyTorch's does not know."""
    side = name if name in (FAIRSEQ, TORCH) else "chunked"
    step = Step(side, setting, 0.0)
    if side == "chunked":
        mebibytes = int(name.split()[0])
        step.criterion.loss_chunk_tokens = max(1, mebibytes * 2**20 // (4 * setting[0]))
    return step.run


def compiled(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Steps of pretraining a cloze LM, as it is and with its towers' blocks compiled."""
    if device() == "cuda" and not budget.has(SECONDS_TO_COMPILE):
        found.figures["skipped"] = "no time left"
        return
    tokens = min(args.tokens)
    samples = [sentences(max(1, tokens // LONGEST), args.sizes, 0, cloze=True)]
    trainings = {}
    for name in ("as it is", "compiled"):
        model = drawn(lambda: language_model(SOURCE, args.sizes))
        if name == "compiled":  # without a C++ compiler, as in a rehearsal, the graph alone is made
            compile_blocks(model, "inductor" if device() == "cuda" else "eager")
        trainings[name] = Training(model, samples, args, "chunked_cross_entropy")
    time_of = alternate({name: training.epoch for name, training in trainings.items()}, args.rounds, "compiled")
    table = Table(f"Pretraining of the cloze LM, {tokens:,} tokens a batch", ["blocks", "ms", "time / as it is"])
    for name, spread in time_of.items():
        table.rows.append([name, f"{1000 * spread.median:.1f}", spread.over(time_of["as it is"]).ratio()])
    found.tables.append(table)
    found.figures["seconds"] = time_of
    torch._dynamo.reset()
    free()
