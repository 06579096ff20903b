"""A run that has come to its end stays as it is when its command is given again.

fairseq asks whether to stop after an update, never before one: a finished run that is started again (a job back in the
queue, a process killed after its last checkpoint) makes one more update, and writes that over its last checkpoint.
"""

from __future__ import annotations

import logging
import sys
from typing import Any, Callable

from lmfusion.fairseq_patches import early_stop

logger = logging.getLogger(__name__)

_COMMANDS = ("fairseq_cli.train", "__main__")


def why_finished(cfg: Any, updates: int) -> str | None:
    """Why there is nothing left to train; None if there is.

    Args:
        cfg: fairseq's whole configuration.
        updates: done.
    """
    most, patience = cfg.optimization.max_update, cfg.checkpoint.patience
    if most and updates >= most:
        return f"{updates:,} updates are done, and --max-update is {most:,}"
    counts = early_stop.counts()
    if patience > 0 and counts is not None and counts["num_runs"] >= patience:
        return f"the last {counts['num_runs']} validations brought no gain, and --patience is {patience}"
    return None


def watch() -> None:
    """Make the command that is running ask before it trains; it is imported before or after this package."""
    for name in _COMMANDS:
        module = sys.modules.get(name)
        train = getattr(module, "train", None)
        if hasattr(module, "should_stop_early") and not getattr(train, "asks_before", False):
            module.train = _asking_before(train)  # type: ignore[union-attr, arg-type]


def _asking_before(original: Callable[..., Any]) -> Callable[..., Any]:
    def train(cfg: Any, trainer: Any, *args: Any, **kwargs: Any) -> Any:
        """fairseq's, of one epoch: its validation losses, and whether to stop."""
        reason = why_finished(cfg, trainer.get_num_updates())
        if reason is None:
            return original(cfg, trainer, *args, **kwargs)
        logger.info(f"this run is finished: {reason}. Nothing is trained, no file is changed.")
        return [None], True

    train.asks_before = True  # type: ignore[attr-defined]
    return train
