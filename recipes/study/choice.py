"""Which dropouts a row has at a bitext size: those with the lowest validation loss, by one rule for all rows.

First the dropout of all is chosen, with the first of the representation dropouts; then, with it, the representation
dropout of rows that read a language model. All by the first seed. The test set is not looked at.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from study.budget import Budget
from study.layout import Setting
from study.plan import DROPOUT, FINAL, REPRESENTATION, Job

Loss = Callable[[Job, Setting], float]
"""The best validation loss of a finished training."""
Chosen = Mapping[tuple[str, int], Setting]
"""By row and size."""


def setting_of(job: Job, budget: Budget, loss: Loss, chosen: Chosen) -> Setting:
    """The dropouts of a job, whose needs are finished.

    Args:
        chosen: what was chosen in an earlier study with the same numbers; it stays.
    """
    base = Setting(budget.dropouts[0], budget.representation_dropouts[0])
    if job.kind == DROPOUT and job.value is not None:
        return Setting(job.value, base.representation)
    if job.kind == FINAL and (job.row, job.size) in chosen:
        return chosen[job.row, job.size]
    dropouts = [need for need in job.needs if need.kind == DROPOUT]
    best = _best(dropouts, lambda need: setting_of(need, budget, loss, chosen), loss, base)
    if job.kind == REPRESENTATION and job.value is not None:
        return Setting(best.dropout, job.value)
    tried = [need for need in job.needs if need.kind == REPRESENTATION]
    return _best([*dropouts, *tried], lambda need: setting_of(need, budget, loss, chosen), loss, best)


def _best(tried: Sequence[Job], setting: Callable[[Job], Setting], loss: Loss, otherwise: Setting) -> Setting:
    """The setting with the lowest loss, the first of equals; ``otherwise`` where nothing was tried."""
    if not tried:
        return otherwise
    return setting(min(tried, key=lambda job: _comparable(loss(job, setting(job)))))


def _comparable(loss: float) -> float:
    return loss if math.isfinite(loss) else math.inf


def record(jobs: Sequence[Job], setting: Callable[[Job], Setting], loss: Loss) -> list[dict[str, Any]]:
    """What was chosen for each row and size, and by which losses, as plain values; given finished jobs."""
    entries = []
    seen: set[tuple[str, int]] = set()
    for job in jobs:
        tried = [need for need in job.needs if need.kind in (DROPOUT, REPRESENTATION)]
        if job.kind == FINAL and tried and (job.row, job.size) not in seen:
            seen.add((job.row, job.size))
            best = setting(job)
            losses = {setting(need).name: round(loss(need, setting(need)), 4) for need in tried}
            entry = {"row": job.row, "size": job.size, "dropout": best.dropout, "representation": best.representation}
            entries.append({**entry, "validation_loss": losses})
    return entries
