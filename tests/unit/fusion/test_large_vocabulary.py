"""A target of a multilingual model's size is told before training, with the criterion that needs less."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.fusion.large_vocabulary import tell_memory


def run(criterion: str, tokens: int | None) -> dict[str, Any]:
    return {"criterion": SimpleNamespace(_name=criterion), "dataset": SimpleNamespace(max_tokens=tokens)}


@pytest.mark.parametrize(
    ("symbols", "given", "level", "figures"),
    [
        (250_002, run("label_smoothed_cross_entropy", 4096), logging.WARNING, ["250,002", "1.9 GiB", "11.4 GiB"]),
        (250_002, run("chunked_cross_entropy", 4096), logging.INFO, ["1.9 GiB"]),
        (128_000, run("cross_entropy", None), logging.WARNING, ["chunked_cross_entropy"]),
        (32_000, run("cross_entropy", 4096), None, []),
        (250_002, None, None, []),
    ],
)
def test_memory_of_a_large_target_is_told(
    caplog: Any, symbols: int, given: Any, level: int | None, figures: list[str]
) -> None:
    with caplog.at_level(logging.INFO):
        tell_memory(symbols, 512, given)
    assert [record.levelno for record in caplog.records] == ([] if level is None else [level])
    assert all(figure in caplog.text for figure in figures)
