#!/usr/bin/env python3
"""Of several trained run folders the one with the lowest validation loss: its name on stdout, the table on stderr.

python recipes/lowest_loss.py runs/baseline.dropout-0.1 runs/baseline.dropout-0.2
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

from lmfusion.errors import InputError, exit_status
from lmfusion.runs.run_folder import FINISHED, RunFolder


def validation_loss(folder: Path) -> float:
    """The lowest validation loss of a finished training, in bits, label smoothing included.

    Raises:
        InputError: the training has not finished, or never had a loss that is a number.
    """
    step = RunFolder(folder).step("train")
    if step.get("state") != FINISHED:
        raise InputError(
            f"{folder}: its training has not finished ({step.get('state', 'not begun')}). Finish it first."
        )
    loss = step["result"].get("best_valid_loss")
    if loss is None or not math.isfinite(loss):
        raise InputError(f"{folder}: no validation gave a loss that is a number; see its train.log.")
    return float(loss)


def _report(folders: list[Path]) -> None:
    """Print the table and the name."""
    losses = {folder: validation_loss(folder) for folder in folders}
    best = min(folders, key=lambda folder: losses[folder])
    for folder, loss in losses.items():
        mark = "  <- lowest" if folder == best else ""
        print(f"  {folder}: validation loss {loss:.3f}{mark}", file=sys.stderr)
    print(best)


def main() -> int:
    """The command line."""
    folders = [Path(word) for word in sys.argv[1:]]
    if not folders:
        print(f"usage: {Path(__file__).name} RUN…", file=sys.stderr)
        return 2
    return exit_status(lambda: _report(folders))


if __name__ == "__main__":
    sys.exit(main())
