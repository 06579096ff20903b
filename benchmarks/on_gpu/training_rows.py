"""Training steps of every row and of both language models beside fairseq's models of the same shape."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Callable

import memory
import torch
from models import SOURCE, TARGET, fairseq_language_model, language_model
from results import Table
from rows import ROWS
from steps import LONGEST, Sample, Training, pairs, sentences
from timing import alternate
from torch import nn
from training import CRITERION, DROPOUT, FAIRSEQ

from on_gpu import watching
from on_gpu.sections import Budget, Found, Memory, drawn, free, quick

OURS, THEIRS = "chunked_cross_entropy", "cross_entropy"
COLUMNS = ["row, tokens a batch", "ms", "tokens/s", "time / fairseq's", "operations", "of the peak", "memory", "waits"]


@dataclass(frozen=True)
class Side:
    """A model that is trained, and by what."""

    name: str
    build: Callable[[Any], nn.Module]
    criterion: str


@dataclass(frozen=True)
class Group:
    """Sides that are compared with the first of them, and their batches."""

    sides: list[Side]
    sample: Callable[[int, Any], Sample]


def groups() -> Iterator[Group]:
    """The rows of the paper's table, and pretraining of both kinds of language model."""
    sides = [Side(row.name, lambda sizes, row=row: quick(row).build(sizes, dropout=DROPOUT), CRITERION)
             for row in (FAIRSEQ, *ROWS)]  # fmt: skip
    yield Group(sides, lambda count, sizes: pairs(count, sizes, seed=0))
    for kind, side in (("cloze", SOURCE), ("causal", TARGET)):

        def theirs(sizes: Any, is_cloze: bool = side == SOURCE) -> nn.Module:
            blocks = 2 * sizes.lm_layers + 1 if is_cloze else sizes.lm_layers
            return drawn(lambda: fairseq_language_model(sizes, blocks))

        def ours(sizes: Any, side: str = side) -> nn.Module:
            return drawn(lambda: language_model(side, sizes))

        def sample(count: int, sizes: Any, is_cloze: bool = side == SOURCE) -> Sample:
            return sentences(count, sizes, 0, cloze=is_cloze)

        pretraining = [Side(f"fairseq LM for {kind}", theirs, THEIRS), Side(f"{kind} LM", ours, OURS)]
        yield Group(pretraining, sample)


def step_figures(training: Training, before: Memory) -> dict[str, Any]:
    """What one step is, apart from its time."""
    training.epoch()
    peak = before.peak()
    training.epoch()  # the first one makes tables and Adam's moments
    return {
        "waits": watching.waits(lambda: training.loss(training.samples[0]).backward()),
        "kernels": watching.kernels(lambda: training.loss(training.samples[0])),
        "operations": training.operations(),
        "tokens": training.tokens,
        "peak_bytes": peak,
    }


def row_of(name: str, found: dict[str, Any], reference: dict[str, Any], peak: float) -> list[str]:
    """For the table."""
    spread, operations = found["seconds"], found["operations"]
    ratio = spread.over(found["reference_seconds"]).ratio()
    return [
        name,
        f"{1000 * spread.median:.1f}",
        spread.rate(found["tokens"]),
        ratio,
        f"{operations / reference['operations']:.2f}×",
        f"{operations / spread.median / peak:.0%}",
        memory.shown(found["peak_bytes"]),
        str(sum(found["waits"].values())),
    ]


def measure(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """All groups at all sizes, as many as there is time for."""
    table = Table(f"Training, {args.models}, {args.precision}", COLUMNS)
    seen = Table("Kernels of attention in a step, and lines that wait for the device", ["row", "what", "times"])
    found.tables += [table, seen]
    found.figures["skipped"] = skipped = []
    longest = 0.0
    for group, tokens in ((group, tokens) for group in groups() for tokens in args.tokens):
        samples = [group.sample(max(1, tokens // LONGEST), args.sizes)]
        reference: dict[str, Any] = {}
        for side in group.sides:
            key = f"{side.name}, {tokens:,}"
            if not budget.has(1.3 * longest + args.reserve):
                skipped.append(key)
                continue
            start = time.monotonic()
            try:
                figures = _side(side, samples, args, reference)
            except torch.OutOfMemoryError:
                skipped.append(f"{key}: out of memory")
                continue
            found.figures[key] = figures
            table.rows.append(row_of(key, figures, reference, args.peak))
            if tokens == args.tokens[0]:
                seen.rows.extend(_seen(side.name, figures))
            longest = max(longest, time.monotonic() - start)
        reference.clear()
        free()


def _seen(name: str, figures: dict[str, Any]) -> list[list[str]]:
    """Rows of the second table."""
    counted = [*figures["kernels"].items(), *sorted(figures["waits"].items())]
    return [[name, what, str(times)] for what, times in counted]


def _side(side: Side, samples: list[Sample], args: argparse.Namespace, reference: dict[str, Any]) -> dict[str, Any]:
    """Figures of a side; the first of a group becomes the reference, and stays on the device."""
    before = Memory()
    training = Training(side.build(args.sizes), samples, args, side.criterion)
    figures = step_figures(training, before)
    if reference:
        both = {"reference": reference["training"].epoch, side.name: training.epoch}
        time_of = alternate(both, args.rounds, side.name)
        return {**figures, "seconds": time_of[side.name], "reference_seconds": time_of["reference"]}
    spread = alternate({side.name: training.epoch}, args.rounds, side.name)[side.name]
    reference.update(figures, training=training)
    return {**figures, "seconds": spread, "reference_seconds": spread}
