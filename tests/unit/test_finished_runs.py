"""When there is nothing left to train."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from lmfusion.fairseq_patches import finished_runs


def config(max_update: int = 0, patience: int = -1) -> Any:
    """Of fairseq's, what says when to stop."""
    return SimpleNamespace(
        optimization=SimpleNamespace(max_update=max_update), checkpoint=SimpleNamespace(patience=patience)
    )


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """fairseq-train, after an epoch without a gain."""
    module = ModuleType("fairseq_cli.train")

    def should_stop_early() -> None:
        """Keeps its counts as attributes."""

    should_stop_early.best, should_stop_early.num_runs = 6.5, 2  # type: ignore[attr-defined]
    module.should_stop_early = should_stop_early  # type: ignore[attr-defined]
    module.train = lambda cfg, trainer, task: ([1.5], False)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "fairseq_cli.train", module)
    return module


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
    command: ModuleType, cfg: Any, reason: str | None
) -> None:
    finished_runs.watch()
    finished_runs.watch()
    trainer = SimpleNamespace(get_num_updates=lambda: 20)
    assert finished_runs.why_finished(cfg, 20) == reason
    assert command.train(cfg, trainer, "task") == (([1.5], False) if reason is None else ([None], True))
