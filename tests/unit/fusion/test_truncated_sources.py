"""--truncate-source: sources are cut to what the model takes, which may be less than the flag of the length says."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lmfusion.fusion.holder import truncate_to_model


@pytest.mark.parametrize(("truncate", "limit", "expected"), [(True, 9, 9), (True, 2000, 1024), (False, 9, 1024)])
def test_sources_are_cut_to_the_shorter_limit(truncate: bool, limit: int, expected: int) -> None:
    task = SimpleNamespace(cfg=SimpleNamespace(truncate_source=truncate, max_source_positions=1024))
    truncate_to_model(task, SimpleNamespace(encoder=SimpleNamespace(max_positions=lambda: limit)))
    assert task.cfg.max_source_positions == expected
