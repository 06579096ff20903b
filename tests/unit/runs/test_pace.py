"""Estimates of time left, of trainings and generations whose speed changes, by a clock that the tests turn."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

import pytest

from lmfusion.runs import watchers
from lmfusion.runs.live_line import LiveLine, clock
from lmfusion.runs.pace import BatchEstimate, Pace, TrainingEstimate


def followed(
    estimate: TrainingEstimate,
    seconds: Sequence[float],
    every: int,
    validation: float = 0.0,
    writing: float = 0.0,
    log: int = 10,
) -> int:
    """Follow a training of updates of so many seconds, a validation after every so many; return updates done."""
    now = 0.0
    for update, each in enumerate(seconds, start=1):
        now += each
        if update % log == 0:
            estimate.saw_updates(update, now)
        if update % every == 0:
            now += validation
            estimate.saw_validation(update, now)
            now += writing
    return len(seconds)


def test_the_time_left_follows_a_training_that_becomes_slower() -> None:
    estimate = TrainingEstimate(2000)
    done = followed(estimate, [0.1] * 1000 + [1.0] * 200, every=10_000)
    assert estimate.seconds_left(done) == pytest.approx(800 * 1.0, rel=0.01), "the average would say 200"


def test_the_time_left_follows_a_training_that_becomes_faster() -> None:
    estimate = TrainingEstimate(3000)
    done = followed(estimate, [1.0] * 200 + [0.1] * 800, every=10_000)
    assert estimate.seconds_left(done) == pytest.approx(2000 * 0.1, rel=0.01)


@pytest.mark.parametrize("every", [100, 105])
def test_validations_to_come_are_counted_and_those_behind_change_no_pace(every: int) -> None:
    estimate = TrainingEstimate(1000)
    done = followed(estimate, [0.5] * 430, every=every, validation=60.0, writing=9.0)
    to_come = len([update for update in range(431, 1000) if update % every == 0]) + 1  # and one at the end
    assert estimate.seconds_left(done) == pytest.approx(570 * 0.5 + to_come * 69.0, rel=0.01)


def test_a_validation_after_every_line_of_the_log_is_counted() -> None:
    estimate = TrainingEstimate(1000)
    done = followed(estimate, [0.5] * 400, every=10, validation=3.0)
    assert estimate.seconds_left(done) == pytest.approx(600 * 0.5 + 60 * 3.0, rel=0.01)


def test_at_the_end_nothing_is_left() -> None:
    estimate = TrainingEstimate(100)
    assert estimate.seconds_left(followed(estimate, [0.5] * 100, every=30, validation=5.0)) == 0


def test_what_the_start_took_is_no_pace() -> None:
    estimate = TrainingEstimate(1000)
    estimate.saw_updates(500, 300.0)  # a training that goes on after minutes of loading
    assert estimate.seconds_left(500) is None
    estimate.saw_updates(510, 305.0)
    assert estimate.seconds_left(510) == pytest.approx(490 * 0.5)


def test_one_slow_interval_is_outweighed_by_those_beside_it() -> None:
    pace = Pace()
    for seconds in (1.0, 1.0, 40.0):
        pace.add(10, seconds)
    assert pace.seconds_each == pytest.approx(42 / 30)


@pytest.mark.parametrize(
    ("seconds", "count", "units"),
    [(9.0, 4, 1 + 3 * 10), (9.0, 5, 4 * 10), (10.0, 4, 3 * 10), (40.0, 3, 1 + 2 * 10), (40.0, 4, 3 * 10)],
)
def test_an_interval_counts_until_thirty_seconds_and_three_others_remain_without_it(
    seconds: float, count: int, units: int
) -> None:
    """Of intervals of one length, the first did one unit of work, and the others ten."""
    pace = Pace()
    for number in range(count):
        pace.add(10 if number else 1, seconds)
    counted = count if units % 10 else count - 1
    assert pace.seconds_each == pytest.approx(counted * seconds / units)


def test_batches_are_timed_and_not_the_lines_of_one() -> None:
    """32 items at once, at first every second, then every four seconds."""
    estimate = BatchEstimate(3200)
    now, done = 100.0, 0
    for batch in range(50):
        now += 1.0 if batch < 25 else 4.0
        for item in range(32):
            done += 1
            estimate.saw_item(done, now + item * 1e-4)
            if batch == 0:
                assert estimate.seconds_left(done) is None, "loading the model tells nothing"
    assert estimate.seconds_left(done) == pytest.approx(1600 / 32 * 4.0, rel=0.01)


def test_the_live_line_shows_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [0.0]
    monkeypatch.setattr(watchers.time, "monotonic", lambda: now[0])
    shown = io.StringIO()
    line, watcher = LiveLine(shown), watchers.TrainingWatcher("toy", 10_000)
    for update in range(100, 3001, 100):
        now[0] += 10 if update <= 2000 else 100
        values = {"loss": "4", "ppl": "16", "wps": "50", "num_updates": str(update), "lr": "1"}
        watcher.take(f"now | INFO | train_inner | {json.dumps(values)}\n", line)
    assert shown.getvalue().splitlines()[-1].endswith(f"{clock(7000)} left")
    assert "\r" not in shown.getvalue(), "a file is no terminal"
