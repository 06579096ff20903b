"""The counts of ``--patience``: without them a run that goes on trains longer than an unbroken one."""

from __future__ import annotations

import sys
from typing import Any

KEY = "early_stop"
"""Of a checkpoint's extra state."""


def _functions() -> list[Any]:
    """Return the functions of fairseq's command whose attributes are the counts of --patience."""
    modules = [sys.modules.get(name) for name in ("fairseq_cli.train", "__main__")]
    return [function for module in modules if (function := getattr(module, "should_stop_early", None)) is not None]


def counts() -> dict[str, Any] | None:
    """Return how long validation has brought no gain, as plain values; None if it was never asked."""
    for function in _functions():
        if hasattr(function, "best"):
            return {"best": function.best, "num_runs": function.num_runs}
    return None


def restore(kept: Any) -> None:
    """Continue counting where :func:`counts` was."""
    if isinstance(kept, dict) and {"best", "num_runs"} <= kept.keys():
        for function in _functions():
            function.best, function.num_runs = kept["best"], kept["num_runs"]
