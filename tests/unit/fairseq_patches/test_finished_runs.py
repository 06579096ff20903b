"""When there is nothing left to train."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.fairseq_patches import early_stop
from lmfusion.fairseq_patches.resuming import why_finished


def config(max_update: int = 0, patience: int = -1) -> Any:
    """Of fairseq's, what says when to stop."""
    return SimpleNamespace(
        optimization=SimpleNamespace(max_update=max_update), checkpoint=SimpleNamespace(patience=patience)
    )


@pytest.mark.parametrize(
    ("cfg", "reason"),
    [
        (config(20), "20 updates are done, and --max-update is 20"),
        (config(19), "20 updates are done, and --max-update is 19"),
        (config(21), None),
        (config(0), None),  # without a limit
        (config(patience=2), "the last 2 validations brought no gain, and --patience is 2"),
        (config(patience=1), "the last 2 validations brought no gain, and --patience is 1"),
        (config(patience=3), None),
        (config(patience=-1), None),
    ],
)
def test_after_twenty_updates_and_two_validations_without_a_gain(
    monkeypatch: pytest.MonkeyPatch, cfg: Any, reason: str | None
) -> None:
    monkeypatch.setattr(early_stop, "counts", lambda: {"best": 6.5, "num_runs": 2})
    assert why_finished(cfg, 20) == reason
