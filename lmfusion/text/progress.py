"""Progress of long work: a bar on a terminal, a line now and then in a log file."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from tqdm import tqdm

LOG_LINE = {"bar_format": "{desc}: {percentage:.0f}%, {remaining} left\n", "mininterval": 10, "delay": 5, "leave": True}
BAR = {"mininterval": 0.2, "dynamic_ncols": True, "leave": False}


def progress(things: Iterable[Any] | None = None, *, total: int | None = None, label: str, unit: str = " lines") -> Any:
    """Return a progress bar on standard error, or lines without carriage returns where that is no terminal.

    Args:
        things: to be gone through; None: the caller calls ``update``.
        total: number of them, where it cannot be asked for.
        label: what is being done.
        unit: of the count.

    Returns:
        A tqdm object.
    """
    style: dict[str, Any] = BAR if sys.stderr.isatty() else LOG_LINE
    return tqdm(things, total=total, desc=label, unit=unit, **style)
