"""Stored states of a frozen language model: the same numbers, computed once, shared, and as small as is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.lm.interface import PretrainedLM


@torch.no_grad()
def test_states_are_those_of_the_lm_first_and_later(
    lm: PretrainedLM, count_rows: Any, open_store: Any, assert_same: Any, tokens: Tensor
) -> None:
    expected = lm.layer_states(tokens)
    counted, stored = count_rows(lm), open_store(lm)
    for _ in range(2):
        assert_same(stored(tokens), expected, tokens)
    assert counted.rows == 3


@torch.no_grad()
def test_a_sentence_is_known_in_any_batch(
    lm: PretrainedLM, count_rows: Any, open_store: Any, assert_same: Any, tokens: Tensor
) -> None:
    """Alone, wider padded, in another order; new ones beside it are computed."""
    stored = open_store(lm)
    stored(tokens[:2])
    counted = count_rows(lm)
    mixed = F.pad(tokens.flip(0), (0, 3), value=1)
    assert_same(stored(mixed), lm.layer_states(mixed), mixed, atol=1e-5)
    assert counted.rows == 1 + 3  # the new one, and those of the comparison
    assert stored(tokens[:1])[0].shape[:2] == (1, 6)


@torch.no_grad()
def test_other_processes_and_runs_read_it(lm: PretrainedLM, count_rows: Any, open_store: Any, tokens: Tensor) -> None:
    """Also what is written while they are at work."""
    first, second = open_store(lm), open_store(lm)
    first(tokens[:1])
    counted = count_rows(lm)
    second(tokens[:1])
    first(tokens[1:2])
    second(tokens[1:2])
    assert counted.rows == 1
    open_store(lm)(tokens[:2])
    assert counted.rows == 1


@torch.no_grad()
def test_another_lm_precision_or_storage_has_a_store_of_its_own(
    lm: PretrainedLM, make_cloze: Any, tmp_path: Path, shake: Any, count_rows: Any, open_store: Any, tokens: Tensor
) -> None:
    open_store(lm)(tokens)
    other = shake(make_cloze()).freeze()
    for change in ("lm", "autocast", "half"):
        counted = count_rows(other if change == "lm" else lm)
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=change == "autocast"):
            open_store(other if change == "lm" else lm, half=change == "half")(tokens)
        assert counted.rows == 3, change
    assert len(list(tmp_path.iterdir())) == 4


@torch.no_grad()
def test_only_the_chosen_states_are_stored(
    lm: PretrainedLM, tmp_path: Path, open_store: Any, assert_same: Any, tokens: Tensor
) -> None:
    expected = lm.layer_states(tokens)
    chosen = [0, len(expected) - 1]
    stored, whole = open_store(lm, chosen=chosen), open_store(lm)
    for _ in range(2):
        assert_same(stored(tokens), [expected[number] for number in chosen], tokens)
    (path,) = tmp_path.glob("*/*.states")
    assert path.stat().st_size == 14 * stored.bytes_per_token() == 14 * 2 * lm.state_dim * 4
    assert_same(whole(tokens), expected, tokens)
    assert len(list(tmp_path.iterdir())) == 2, "stores of other states lie beside it"


@torch.no_grad()
def test_half_precision_halves_the_size_at_a_stated_error(
    lm: PretrainedLM, tmp_path: Path, open_store: Any, tokens: Tensor, assert_same: Any
) -> None:
    expected = lm.layer_states(tokens)
    sizes = {}
    for half in (False, True):
        stored = open_store(lm, tmp_path / str(half), half=half)
        states = stored(tokens)
        assert {state.dtype for state in states} == {torch.float32}
        (path,) = (tmp_path / str(half)).glob("*/*.states")
        sizes[half] = path.stat().st_size
        assert sizes[half] == 14 * stored.bytes_per_token()
        assert_same(states, expected, tokens, rtol=5e-4 * half, atol=1e-6 * half)
    assert sizes[True] * 2 == sizes[False]
