"""One study under way: what each job is started with, and what is known of those that have finished."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from lmfusion.runs.hypotheses import headline
from lmfusion.runs.run_folder import RunFolder
from study import choice
from study.layout import Layout, Setting
from study.plan import DROPOUT, FINAL, LM, REPRESENTATION, Job
from study.results import Results
from study.runner import Start


@dataclass
class Session:
    """A layout, the committed results, and the choices made so far."""

    layout: Layout
    results: Results
    _chosen: dict[tuple[str, int], Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chosen = self.results.chosen()

    def setting(self, job: Job) -> Setting:
        """A job's dropouts, once what it needs has finished."""
        return choice.setting_of(job, self.layout.budget, self.loss, self._chosen)

    def loss(self, job: Job, setting: Setting) -> float:
        """The best validation loss of a finished training; infinite where there is none."""
        found = self.layout.run(job, setting).step("train").get("result", {}).get("best_valid_loss")
        return math.inf if found is None else float(found)

    def is_committed(self, job: Job) -> bool:
        """Whether a job need not be run, because it, or what it is to choose, is among the committed results."""
        if job.kind in (DROPOUT, REPRESENTATION):
            return (job.row, job.size) in self._chosen
        return self.results.has(job)

    def start(self, job: Job) -> Start:
        """How a job is started, given that what it needs has finished."""
        if self.is_committed(job):
            return Start([], {}, self.layout.out, lambda: True, lambda: self._words(job, None))
        setting = self.setting(job)
        return Start(
            self.layout.command(job),
            self.layout.settings(job, setting),
            self.layout.log(job, setting),
            lambda: self.layout.is_done(job, setting),
            lambda: self._words(job, setting),
            self.layout.spent(job, setting),
        )

    def _words(self, job: Job, setting: Setting | None) -> str:
        """What came of a finished job."""
        if job.kind == LM:
            return "trained"
        path = self.results.path(job)
        if setting is None and path is not None and self.results.has(job):
            return f"{in_short(RunFolder(path))}, committed: {path}"
        if setting is None:
            return "chosen before"
        if job.kind == FINAL:
            return in_short(self.layout.run(job, setting))
        return f"validation loss {self.loss(job, setting):.3f}"

    def choices(self, finished: Sequence[Job]) -> list[dict[str, Any]]:
        """What was chosen by this study, and by which losses."""
        own = [job for job in finished if (job.row, job.size) not in self._chosen]
        return choice.record(own, self.setting, self.loss)


def in_short(run: RunFolder) -> str:
    """A run's scores in a few words."""
    return ", ".join(f"{metric} {value:.2f}" for metric, value in headline(run.scores["test"]).items())
