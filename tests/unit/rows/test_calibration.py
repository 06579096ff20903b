"""Measuring the first updates: seconds by the log, and an early end where the minutes are too few."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmfusion import InputError
from lmfusion.rows import calibration

STAGES = (["lm"], ["baseline", "lstm", "src_elmo"])
SPEEDS = {"lm": (1, 4, 6), "baseline": (0.5, 2, 2), "lstm": (1, 1, 1), "src_elmo": (8, 8, 8)}
"""Updates a second by script, as fairseq logs them."""


def measured(folder: Path, minutes: float, jobs: int) -> tuple[dict[str, float], list[list[str]], list[int]]:
    """What scripts that write such logs give, which ran together, and of how many."""
    together, beside = [], []

    def run(names: Sequence[str], count: int) -> None:
        together.append(list(names))
        beside.append(count)
        for name in names:
            (folder / name).mkdir()
            lines = (f'| INFO | train_inner | {{"wps": "9", "ups": "{speed}"}}\n' for speed in SPEEDS[name])
            (folder / name / "train.log").write_text("".join(lines), encoding="utf-8")

    try:
        found = calibration.measure(STAGES, minutes, jobs, run, lambda name: folder / name)
    except InputError as error:
        found = {str(error): 0.0}
    return found, together, beside


def test_seconds_are_those_after_the_first_updates(tmp_path: Path) -> None:
    found, together, beside = measured(tmp_path, 1000, 2)
    assert found == {"lm": 0.2, "baseline": 0.5, "lstm": 1.0, "src_elmo": 0.125}
    assert together == [["lm"], ["baseline", "lstm"], ["src_elmo"]]
    assert beside == [1, 3, 3]


def test_updates_too_slow_for_fairseqs_log_take_as_long_as_it_can_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rounds updates a second to hundredths: 0 is less than 0.005."""
    monkeypatch.setitem(SPEEDS, "src_elmo", (0, 0, 0))
    found, _, _ = measured(tmp_path, 1000, 2)
    assert found["src_elmo"] == 200


@pytest.mark.parametrize(("minutes", "last"), [(0.1, "lm"), (1.2, "baseline"), (3, "lstm")])
def test_nothing_more_is_measured_once_the_minutes_are_too_few(tmp_path: Path, minutes: float, last: str) -> None:
    found, together, _ = measured(tmp_path, minutes, 1)
    assert together[-1] == [last]
    assert f"--minutes {minutes:g}" in next(iter(found))


def test_the_minutes_that_measuring_took_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """400 minutes a script: the third one's end is after the 1,000 that would be many for these updates."""
    clock = iter(range(0, 10_000 * 60, 400 * 60))
    monkeypatch.setattr(calibration, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    found, together, _ = measured(tmp_path, 1000, 1)
    assert together == [["lm"], ["baseline"], ["lstm"]]
    assert "--minutes 1000" in next(iter(found))
