"""How long jobs take: from what was measured on one CPU core, corrected by what this study's own jobs took."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from study.plan import FINAL, LM, Job

SECONDS_AN_UPDATE = {
    "debian_ende": {"baseline": 0.35, "shared": 0.35, "shared_bitext_bpe": 0.35, "tgt_elmo": 0.4, "tgt_ft": 0.5}
    | dict.fromkeys(("src_elmo", "src_elmo_shdemb"), 0.4)
    | {"src_ft": 0.8},
    "debian_synopsis": {"baseline": 0.22, "src_elmo_shdemb": 0.28, "src_ft": 0.7},
}
"""One core with bf16 units, recipes/_common.sh's model sizes and batches, stored LM states."""
LM_SECONDS_AN_UPDATE = 0.5
START, SCORING = 25.0, 45.0
GPU_SPEED = 5.0
"""How much faster a run is said to be on a GPU that it shares with as many runs as there are cores. Not measured."""


def seconds(job: Job, task: str, gpu: bool) -> float:
    """What a job takes at most, in seconds, if it does not stop early."""
    each = LM_SECONDS_AN_UPDATE if job.kind == LM else SECONDS_AN_UPDATE[task].get(job.row, 0.5)
    trained_before = job.kind == FINAL and any(need.row == job.row and need.seed == job.seed for need in job.needs)
    work = 0.0 if trained_before else each * job.updates / (GPU_SPEED if gpu else 1)
    return START + work + (SCORING if job.kind == FINAL else 0)


class Clock:
    """Estimates the time left."""

    def __init__(self, expected: Mapping[Job, float], at_a_time: int) -> None:
        self._expected = expected
        self._at_a_time = at_a_time
        self._spent = self._planned = 0.0

    def finished(self, job: Job, seconds_taken: float) -> None:
        """Learn from a job that this study has run whole."""
        self._spent += seconds_taken
        self._planned += self._expected[job]

    @property
    def pace(self) -> float:
        """Time taken by time expected; 1 before anything is known."""
        return self._spent / self._planned if self._planned else 1.0

    def left(self, waiting: Iterable[Job], running: Mapping[Job, float]) -> float:
        """Seconds left, given the jobs to come and how long the running ones have run."""
        longest = max((self._expected[job] * self.pace - ran for job, ran in running.items()), default=0.0)
        going = sum(max(0.0, self._expected[job] * self.pace - ran) for job, ran in running.items())
        coming = sum(self._expected[job] * self.pace for job in waiting)
        return max(longest, (going + coming) / self._at_a_time)


def in_words(seconds_left: float) -> str:
    """About how long, for people."""
    if seconds_left < 90:
        return f"about {max(1, round(seconds_left))} s"
    if seconds_left < 90 * 60:
        return f"about {round(seconds_left / 60)} min"
    return f"about {seconds_left / 3600:.1f} h"
