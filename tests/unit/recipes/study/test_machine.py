"""How many runs a machine carries at a time."""

from __future__ import annotations

import os

import pytest
from study import machine


@pytest.mark.parametrize(("gigabytes", "runs"), [(64, 8), (7, 3), (1, 1)])
def test_memory_limits_the_runs_where_cores_do_not(monkeypatch: pytest.MonkeyPatch, gigabytes: int, runs: int) -> None:
    values = {"SC_PHYS_PAGES": gigabytes * 10**6, "SC_PAGE_SIZE": 1000}
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.setattr(os, "sysconf_names", dict.fromkeys(values, 0))  # macOS has no SC_AVPHYS_PAGES
    monkeypatch.setattr(os, "sysconf", values.__getitem__)
    assert machine.jobs_that_fit(gpu=False) == runs
