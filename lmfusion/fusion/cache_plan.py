"""How much disk the stored states of a training set take, told before training begins."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

from fairseq.data import data_utils, indexed_dataset

from lmfusion.errors import UserError
from lmfusion.lm.stored_states import StoredStates

logger = logging.getLogger(__name__)


def announce(stored: StoredStates, cfg: Any) -> None:
    """Say how much ``--src-lm-cache`` will take, and refuse what cannot fit.

    Args:
        stored: states, empty or not.
        cfg: fairseq's whole configuration; None where a model is built outside a training run.

    Raises:
        UserError: if the disk has less room than the states need, or the folder cannot be made.
    """
    tokens = _source_tokens(cfg)
    if tokens is None:
        return
    try:
        stored.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError(f"--src-lm-cache {stored.folder} cannot be made: {error.strerror}. Give another.") from error
    present = sum(path.stat().st_size for path in stored.folder.glob("*/*.states"))
    needed = tokens * stored.bytes_per_token()
    free = shutil.disk_usage(stored.folder).free
    sizes = f"{needed / 1e9:.2f} GB for {tokens:,} tokens of training text ({present / 1e9:.2f} GB are there)"
    if needed - present > free:
        raise UserError(
            f"--src-lm-cache {stored.folder} needs up to {sizes}, and {free / 1e9:.2f} GB are free: give a folder on "
            f"another disk, halve it by --src-lm-cache-half, or leave it out."
        )
    logger.info(f"stored states of the source language model: up to {sizes} in {stored.folder}")


def _source_tokens(cfg: Any) -> int | None:
    """Tokens of the training set's source side, each sentence's leading </s> included."""
    task = cfg.get("task") if cfg is not None else None
    if task is None or not task.get("source_lang"):
        return None
    source, target = task["source_lang"], task["target_lang"]
    subset = cfg["dataset"]["train_subset"] if cfg.get("dataset") else "train"
    total = 0
    for folder in task["data"].split(":"):
        prefixes = [Path(folder) / f"{subset}.{pair}.{source}" for pair in (f"{source}-{target}", f"{target}-{source}")]
        for prefix in prefixes:
            if indexed_dataset.dataset_exists(str(prefix), impl=None):
                data = data_utils.load_indexed_dataset(str(prefix), None)
                total += int(data.sizes.sum()) + len(data)
    return total or None
