"""The causal LM with its cache says what it says without."""

from __future__ import annotations

from typing import Any

import pytest
import torch

TOKENS = torch.tensor([[2, 5, 9, 4, 11, 7, 8], [2, 6, 6, 12, 10, 4, 9], [2, 13, 5, 7, 7, 20, 21]])


@pytest.mark.parametrize("ends", [[1, 2, 3, 4, 5, 6, 7], [3, 4, 7], [1, 6, 7], [7]], ids=str)
def test_token_by_token_and_in_chunks_equals_the_full_pass(any_causal_lm: Any, ends: list[int]) -> None:
    lm = any_causal_lm
    cache: dict[str, Any] = {}
    with torch.no_grad():
        full = lm.layer_states(TOKENS)
        pieces = [lm.layer_states(TOKENS[:, :end], cache) for end in ends]
    widths = [end - start for start, end in zip([0, *ends], ends)]
    assert [piece[0].size(1) for piece in pieces] == widths  # only new positions are computed
    for index, expected in enumerate(full):
        found = torch.cat([piece[index] for piece in pieces], dim=1)
        torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_cached_logits_equal_those_of_the_full_pass(any_causal_lm: Any) -> None:
    cache: dict[str, Any] = {}
    with torch.no_grad():
        full = any_causal_lm(TOKENS)[0]
        for end in range(1, TOKENS.size(1) + 1):
            step = any_causal_lm(TOKENS[:, :end], incremental_state=cache)[0]
            torch.testing.assert_close(step, full[:, end - 1 : end], rtol=0, atol=1e-5)


def test_cached_positions_are_not_read_again(make_causal: Any) -> None:
    """The proof that there is a cache: a prefix changed behind its back changes nothing."""
    lm = make_causal()
    cache: dict[str, Any] = {}
    with torch.no_grad():
        expected = lm.top_state(TOKENS)[:, 5:6]
        lm.top_state(TOKENS[:, :5], cache)
        changed = TOKENS[:, :6].clone()
        changed[:, :5] = 15
        torch.testing.assert_close(lm.top_state(changed, cache), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("new_order", [[2, 0, 1], [1, 1, 0], [2, 0]], ids=["permuted", "copied", "shrunk"])
def test_cache_follows_the_beam(make_causal: Any, new_order: list[int]) -> None:
    lm = make_causal()
    cache: dict[str, Any] = {}
    order = torch.tensor(new_order)
    beams = TOKENS.index_select(0, order)
    with torch.no_grad():
        expected = lm.top_state(beams)[:, 4:6]
        lm.top_state(TOKENS[:, :4], cache)
        lm.reorder_incremental_state_scripting(cache, order)
        found = torch.cat([lm.top_state(beams[:, :end], cache) for end in (5, 6)], dim=1)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)


def test_two_models_keep_apart_in_one_decoding_state(make_causal: Any) -> None:
    """Source and target side, or an ensemble, may share fairseq's dictionary of states."""
    first, second = make_causal(), make_causal()
    cache: dict[str, Any] = {}
    with torch.no_grad():
        for end in range(1, 5):
            for lm in (first, second):
                step = lm.top_state(TOKENS[:, :end], cache)
                torch.testing.assert_close(step[:, 0], lm.top_state(TOKENS[:, :end])[:, -1], rtol=0, atol=1e-5)
