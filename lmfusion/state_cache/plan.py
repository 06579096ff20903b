"""Estimate the disk space of a training set's stored states before training begins."""

from __future__ import annotations

import itertools
import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fairseq.data import data_utils, indexed_dataset
from fairseq.utils import split_paths

from lmfusion.errors import InputError
from lmfusion.state_cache.stored_states import StoredStates
from lmfusion.text.named_files import languages_of

logger = logging.getLogger(__name__)


def announce(stored: StoredStates, cfg: Any) -> None:
    """Log how much disk space ``--src-lm-cache`` will take, and refuse it if there is less.

    Args:
        stored: the cache, empty or not.
        cfg: fairseq's whole configuration; None where a model is built outside a training run.

    Raises:
        InputError: if the disk has less room than the states need, or the folder cannot be made.
    """
    tokens = _source_tokens(cfg)
    if tokens is None:
        return
    try:
        stored.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--src-lm-cache {stored.folder} cannot be made: {error.strerror}. Give another.") from error
    weights, autocast = _precision(cfg)
    present = stored.present(weights, autocast)
    needed = tokens * stored.bytes_per_token(weights)
    free = shutil.disk_usage(stored.folder).free
    sizes = f"{needed / 1e9:.2f} GB for {tokens:,} tokens of training text ({present / 1e9:.2f} GB are there)"
    if needed - present > free:
        raise InputError(
            f"--src-lm-cache {stored.folder} needs up to {sizes}, and {free / 1e9:.2f} GB are free: give a folder on "
            f"another disk, halve it by --src-lm-cache-half, or leave it out."
        )
    logger.info(f"stored states of the source language model: up to {sizes} in {stored.folder}")


def _precision(cfg: Any) -> tuple[torch.dtype, torch.dtype | None]:
    """Return the type of the LM's weights in training, and the type of autocast, None without it."""
    common, model = cfg.get("common") or {}, cfg.get("model") or {}
    on_cpu = common.get("cpu") or not torch.cuda.is_available()
    if common.get("amp") and not on_cpu:
        return torch.float32, torch.float16
    half = {"fp16": torch.float16, "bf16": torch.bfloat16}
    weights = next((dtype for flag, dtype in half.items() if common.get(flag)), torch.float32)
    return weights, torch.bfloat16 if model.get("cpu_bf16") and on_cpu else None


def _source_tokens(cfg: Any) -> int | None:
    """Count the tokens of the training set's source side, each sentence's leading </s> included."""
    task = cfg.get("task") if cfg is not None else None
    if task is None or not task.get("data"):
        return None
    folders = split_paths(task["data"])
    source, target = languages_of(task, folders[0])
    if source is None or target is None:
        return None
    subset = cfg["dataset"]["train_subset"] if cfg.get("dataset") else "train"
    longest = task.get("max_source_positions") if task.get("truncate_source") else None
    total = 0
    for folder in folders:
        for prefix in _parts(Path(folder), subset, source, target):
            data = data_utils.load_indexed_dataset(str(prefix), None)  # whose end is that of its sizes
            total += int(np.minimum(data.sizes, longest or np.inf).sum()) + len(data)
    return total or None


def _parts(folder: Path, subset: str, source: str, target: str) -> Iterator[Path]:
    """Yield the source texts that fairseq concatenates: those of train, train1, train2 and so on."""
    for number in itertools.count():
        split = f"{subset}{number or ''}"
        names = [f"{split}.{pair}.{source}" for pair in (f"{source}-{target}", f"{target}-{source}")]
        found = [folder / name for name in names if indexed_dataset.dataset_exists(str(folder / name), impl=None)]
        if not found:
            return
        yield found[0]
