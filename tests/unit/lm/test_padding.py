"""A sentence has the same states alone, right-padded, left-padded and among other sentences (within 1e-5)."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import Tensor

ROWS = [[2, 5, 9, 4, 11, 7, 2], [2, 6, 2], [2, 8, 13, 10, 2], [2]]


def every_output(lm: Any, tokens: Tensor) -> list[Tensor]:
    """All that others see of a language model, each B x T x C."""
    outputs = list(lm.layer_states(tokens))
    if getattr(lm, "join", None) is not None or not lm.sees_future:
        outputs.append(lm.top_state(tokens))
    logits = lm(tokens)[0]
    return outputs + ([logits] if logits.dim() == 3 else list(logits.unbind(1)))


def assert_same_in_every_batch(lm: Any, batch: Callable[..., Tensor]) -> None:
    with torch.no_grad():
        alone = [every_output(lm, torch.tensor([row])) for row in ROWS]
        for left in (False, True):
            for width in (0, 12):  # 12: columns that are padding in every row
                together = every_output(lm, batch(ROWS, left=left, width=width))
                for index, row in enumerate(ROWS):
                    for state, expected in zip(together, alone[index], strict=True):
                        own = state[index, -len(row) :] if left else state[index, : len(row)]
                        torch.testing.assert_close(own, expected[0], rtol=0, atol=1e-5)


def test_cloze_states_do_not_depend_on_the_batch(any_cloze_lm: Any, batch: Any) -> None:
    assert_same_in_every_batch(any_cloze_lm, batch)


def test_states_of_a_pair_of_lms_do_not_depend_on_the_batch(make_cloze: Any, batch: Any) -> None:
    assert_same_in_every_batch(make_cloze(targets=("future", "past")), batch)


def test_causal_states_do_not_depend_on_the_batch(any_causal_lm: Any, batch: Any) -> None:
    assert_same_in_every_batch(any_causal_lm, batch)


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_states_do_depend_on_positions_and_order(make_cloze: Any, make_causal: Any, side: str) -> None:
    """Guards the tests above: a model that ignored everything around a word would pass them."""
    lm = make_cloze() if side == "cloze" else make_causal()
    there = lm.top_state(torch.tensor([[2, 5, 5, 9, 2]]))[0]
    swapped = lm.top_state(torch.tensor([[2, 9, 5, 5, 2]]))[0]
    assert (there[1] - there[2]).abs().max() > 1e-2
    assert (there[2] - swapped[2]).abs().max() > 1e-2


def test_sentence_of_a_single_token_has_finite_states(any_cloze_lm: Any) -> None:
    for output in every_output(any_cloze_lm, torch.tensor([[2]])):
        assert output.shape[:2] == (1, 1)
        assert output.isfinite().all()


def test_context_of_a_single_token_is_zero(make_cloze: Any) -> None:
    """Neither neighbour exists, and beyond the ends stand zero vectors."""
    lm = make_cloze()
    assert torch.equal(lm.layer_states(torch.tensor([[2]]))[-2], torch.zeros(1, 1, 2 * lm.embed_dim))


def test_single_token_gets_gradients_that_are_finite(make_cloze: Any) -> None:
    """A position without any visible key must not put NaN into the gradients of others."""
    lm = make_cloze().train()
    lm(torch.tensor([[2, 1, 1], [2, 5, 2]]))[0].square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in lm.parameters())


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_row_of_nothing_but_padding_harms_nobody(make_cloze: Any, make_causal: Any, side: str) -> None:
    """fairseq's dummy batches have such rows."""
    lm = make_cloze() if side == "cloze" else make_causal()
    tokens = torch.tensor([[2, 5, 2], [1, 1, 1]])
    expected = lm(tokens[:1])[0]
    found = lm(tokens)[0]
    assert found.isfinite().all()
    torch.testing.assert_close(found[:1], expected, rtol=0, atol=1e-5)
