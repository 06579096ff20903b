"""Which checkpoint a run starts from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

LAST = "checkpoint_last.pt"


def starts_from(options: Any) -> Path | None:
    """Return the checkpoint that fairseq-train is about to read; None if there is none.

    Args:
        options: fairseq's configuration of checkpoints.
    """
    last = Path(options.save_dir) / LAST
    if options.restore_file != LAST:
        path = Path(options.restore_file)
    elif last.is_file() or (options.continue_once is None and options.finetune_from_model is None):
        path = last
    else:
        path = Path(options.continue_once or options.finetune_from_model)
    return path if path.is_file() else None
