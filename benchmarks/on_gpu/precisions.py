"""fairseq's own trainer in every precision: updates that lower the loss, their time and memory."""

from __future__ import annotations

import argparse
import copy
import math
import statistics
import tempfile
from collections.abc import Mapping
from typing import Any

import memory
import torch
from fairseq import options as fairseq_options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.tasks.translation import TranslationTask
from fairseq.trainer import Trainer
from models import dictionary_of_size
from options import device
from results import Table
from rows import ROWS
from steps import LONGEST, pairs
from timing import seconds
from training import DROPOUT

from on_gpu.sections import Budget, Found, Memory, free, quick

FLAGS = ("--fp16", "--bf16", "--amp", "--memory-efficient-fp16", "--fp16 --fp16-no-flatten-grads")
FLAGS += ("", "--memory-efficient-bf16")
NEEDS_GPU = ("--fp16", "--amp")  # by itself; on a CPU fairseq asks for its GPU, or does nothing
NAMES = ("baseline", "SRC-ELMO", "SRC-FT")
UPDATES = 16
"""On an H200 fp16 skipped four of the first six: its loss scale begins at 128 and is halved at each overflow."""
COLUMNS = ["row, flags", "updates", "first loss", "lowest", "last", "ms an update", "peak memory", "loss scale"]


def configuration(flags: str, folder: str) -> Any:
    """fairseq-train's, of these flags."""
    line = f"{folder} --save-dir {folder} --task translation -s en -t de --arch lmfusion_tiny --max-tokens 4000"
    line += " --optimizer adam --lr 0.0003 --clip-norm 1 --criterion label_smoothed_cross_entropy"
    line += f" --label-smoothing 0.1 --fp16-init-scale 128 {flags}" + (" --cpu" if device() == "cpu" else "")
    parsed = fairseq_options.parse_args_and_arch(fairseq_options.get_training_parser(), line.split())
    return convert_namespace_to_omegaconf(parsed)


def train(name: str, cfg: Any, args: argparse.Namespace) -> dict[str, Any]:
    """Updates on one batch."""
    before = Memory()
    dictionary = dictionary_of_size(args.sizes.vocabulary)
    task = TranslationTask(cfg.task, dictionary, dictionary)
    row = next(row for row in ROWS if row.name == name)
    model = quick(row).build(args.sizes, dropout=DROPOUT).cpu()  # the trainer moves it, as from a command
    trainer = Trainer(cfg, task, model, task.build_criterion(cfg.criterion))
    count = max(1, min(args.tokens) // LONGEST)
    batch = {**pairs(count, args.sizes, seed=0), "id": torch.arange(count), "nsentences": count}
    losses, times = [], []
    for _ in range(UPDATES):
        logged: list[Any] = []
        times.append(seconds(lambda logged=logged: logged.append(trainer.train_step([batch]))))
        losses.append(math.nan if logged[0] is None else float(logged[0]["loss"]))  # None: the loss scale was too high
    scale = getattr(getattr(trainer.optimizer, "scaler", None), "loss_scale", None)
    return {"losses": losses, "seconds": times, "scale": scale, "peak_bytes": before.peak()}


def measure(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Every row in every precision, as many as there is time for."""
    table = Table("fairseq's trainer in each precision", COLUMNS)
    found.tables.append(table)
    found.figures["skipped"] = skipped = []
    with tempfile.TemporaryDirectory() as folder:
        for side in ("en", "de"):
            dictionary_of_size(args.sizes.vocabulary).save(f"{folder}/dict.{side}.txt")
        for flags in FLAGS:
            if (device() == "cpu" and flags in NEEDS_GPU) or not budget.has(args.reserve):
                skipped.append(flags)
                continue
            cfg = configuration(flags, folder)
            for name in NAMES[:2] if args.tiny else NAMES:
                key = f"{name}, {flags or 'fp32'}"
                found.figures[key] = figures = train(name, copy.deepcopy(cfg), args)
                table.rows.append(described(key, figures))
                free()


def described(key: str, figures: Mapping[str, Any]) -> list[str]:
    """A row of the table; an update that was skipped for its gradients has no loss, and its time says nothing."""
    made = [(loss, time) for loss, time in zip(figures["losses"], figures["seconds"]) if math.isfinite(loss)]
    losses = [loss for loss, _ in made]
    shown = [f"{loss:.3f}" for loss in (losses[0], min(losses), losses[-1])] if losses else ["none"] * 3
    # The first one prepares the device.
    time = f"{1000 * statistics.median([time for _, time in made[1:]]):.1f}" if made[1:] else "none"
    scale = "" if figures["scale"] is None else f"{float(figures['scale']):g}"
    counted = f"{len(made)} of {len(figures['losses'])}"
    return [key, counted, *shown, time, memory.shown(figures["peak_bytes"]), scale]
