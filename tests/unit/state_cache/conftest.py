"""A frozen language model, the stores of its states, and how many rows it was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import PretrainedLM
from lmfusion.state_cache.stored_states import StoredStates


class Counted:
    """Counts the rows a language model is asked for."""

    def __init__(self, lm: PretrainedLM) -> None:
        self.rows, self._original = 0, lm.states
        lm.states = self  # type: ignore[method-assign, assignment]

    def __call__(self, tokens: Tensor, *args: Any, **kwargs: Any) -> Any:
        self.rows += tokens.size(0)
        return self._original(tokens, *args, **kwargs)


@pytest.fixture
def lm(make_cloze: Any) -> PretrainedLM:
    """A frozen cloze LM."""
    frozen: PretrainedLM = make_cloze().freeze()
    return frozen


@pytest.fixture
def count_rows() -> Callable[[PretrainedLM], Counted]:
    """Count from now on: ``count_rows(lm).rows``."""
    return Counted


@pytest.fixture
def open_store(tmp_path: Path) -> Callable[..., StoredStates]:
    """A store as a process opens it: ``open_store(lm, half=True)``."""

    def opened(lm: PretrainedLM, folder: Path = tmp_path, **flags: Any) -> StoredStates:
        return StoredStates(lm, folder, state_fingerprint(lm), **flags)

    return opened


@pytest.fixture
def tokens(batch: Callable[..., Tensor]) -> Tensor:
    """Three sentences: of 6, 5 and 3 tokens, 14 in all."""
    return batch([[2, 5, 9, 4, 11, 2], [2, 6, 7, 8, 2], [2, 21, 2]])


@pytest.fixture
def assert_same() -> Callable[..., None]:
    """Compare states at words; those at padding are unspecified: ``assert_same(ours, theirs, tokens)``."""

    def compare(ours: list[Tensor], theirs: list[Tensor], tokens: Tensor, rtol: float = 0, atol: float = 0) -> None:
        words = tokens.ne(1)
        for left, right in zip(ours, theirs, strict=True):
            torch.testing.assert_close(left[words], right[words], rtol=rtol, atol=atol)

    return compare
