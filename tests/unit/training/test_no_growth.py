"""10,000 updates and 10,000 look-ups of stored states need no more memory than 2,000 do."""

from __future__ import annotations

import gc
import resource
from pathlib import Path
from typing import Any, Callable

import pytest
import torch

from lmfusion.fusion.finetune import FinetuneConfig, FinetuneFusion
from lmfusion.fusion.interface import Side
from lmfusion.fusion.source import SourceEmbedding
from lmfusion.state_cache.stored_states import StoredStates

SETTLED, UPDATES = 2_000, 10_000
PAGE = resource.getpagesize()
ALLOWED = 4 * 1024**2  # bytes: 500 a step would be found


def resident() -> int:
    """Memory of this process, in bytes."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * PAGE


def tensors() -> int:
    """How many tensors there are."""
    gc.collect()
    return sum(1 for thing in gc.get_objects() if type(thing) in (torch.Tensor, torch.nn.Parameter))


def growth(step: Callable[[], Any]) -> tuple[int, int]:
    """Bytes and tensors that steps after the first 2,000 leave behind."""
    before = 0, 0
    for number in range(UPDATES):
        if number == SETTLED:
            before = resident(), tensors()
        step()
    return resident() - before[0], tensors() - before[1]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads this process's memory from /proc")
def test_ten_thousand_updates_of_a_fine_tuned_representation(make_cloze: Any) -> None:
    """In rows of different lengths."""
    lm = make_cloze(decoder_layers=1)
    side = Side("src", "source", "encoder", lm.symbols, width=8, heads=2)
    fusion = FinetuneFusion(lm, side, FinetuneConfig(representation_dropout=0.1))
    part = SourceEmbedding(fusion, lm.dictionary, 8).train()
    optimizer = torch.optim.Adam(part.parameters(), lr=1e-4)
    rows = [torch.full((2, length), 7) for length in (2, 3, 4)]
    done = 0

    def step() -> None:
        nonlocal done
        optimizer.zero_grad()
        part(rows[done % 3]).square().mean().backward()
        optimizer.step()
        done += 1

    left, objects = growth(step)
    assert done == UPDATES
    assert objects <= 0
    assert left < ALLOWED


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="reads this process's memory from /proc")
def test_ten_thousand_look_ups_of_stored_states(make_cloze: Any, tmp_path: Path) -> None:
    stored = StoredStates(make_cloze().freeze(), tmp_path, "fingerprint")
    tokens = torch.tensor([[2, 5, 9, 4, 2], [2, 7, 2, 1, 1]])
    with torch.no_grad():
        left, objects = growth(lambda: stored(tokens))
    assert objects <= 0
    assert left < ALLOWED
