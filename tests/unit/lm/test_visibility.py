"""What a prediction may see: the cloze LM everything but the word itself, the causal LM nothing later."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import Tensor, nn

SENTENCE = [2, 5, 9, 4, 11, 7, 2]


def movement(model: nn.Module, changed: int, states: Callable[[Tensor], Tensor] | None = None) -> Tensor:
    """How far the output at each position moves (maximum norm) when one token is another: T."""
    states = states or (lambda tokens: model(tokens)[0])
    tokens = torch.tensor([SENTENCE])
    other = tokens.clone()
    other[0, changed] = 8
    with torch.no_grad():
        return (states(tokens) - states(other))[0].abs().amax(-1)


def test_cloze_prediction_depends_on_every_token_but_its_own(any_cloze_lm: Any) -> None:
    def cloze_logits(tokens: Tensor) -> Tensor:
        logits: Tensor = any_cloze_lm(tokens)[0]
        return logits if logits.dim() == 3 else logits[:, 0]

    for changed in range(len(SENTENCE)):
        moved = movement(any_cloze_lm, changed, cloze_logits)
        assert moved[changed] < 1e-6
        others = torch.arange(len(SENTENCE)) != changed
        assert moved[others].min() > 1e-4


def test_cloze_representation_also_sees_its_own_token(make_cloze: Any) -> None:
    lm = make_cloze()
    for changed in range(len(SENTENCE)):
        assert movement(lm, changed, lm.top_state).min() > 1e-4


def test_linear_join_never_sees_its_own_token(make_cloze: Any) -> None:
    """It has no mask to widen: its query leaves the token out in either use."""
    lm = make_cloze(linear_final_layer=True)
    for changed in range(len(SENTENCE)):
        assert movement(lm, changed, lm.top_state)[changed] < 1e-6


@pytest.mark.parametrize("layer", [1, 2])
def test_towers_see_one_side_and_the_token_itself(make_cloze: Any, layer: int) -> None:
    lm = make_cloze()
    forward = movement(lm, 3, lambda tokens: lm.layer_states(tokens)[layer][..., : lm.embed_dim])
    backward = movement(lm, 3, lambda tokens: lm.layer_states(tokens)[layer][..., lm.embed_dim :])
    positions = torch.arange(len(SENTENCE))
    assert torch.equal(forward > 1e-5, positions >= 3)
    assert torch.equal(backward > 1e-5, positions <= 3)


def test_causal_prediction_depends_on_all_earlier_tokens_and_no_later_one(any_causal_lm: Any) -> None:
    for changed in range(len(SENTENCE)):
        moved = movement(any_causal_lm, changed)
        if changed:
            assert moved[:changed].max() < 1e-6
        assert moved[changed:].min() > 1e-4


def test_pair_of_lms_predicts_the_next_and_the_previous_token(make_cloze: Any) -> None:
    """Logits of two targets, K x B x T x V: each sees its side of the sentence only."""
    lm = make_cloze(targets=("future", "past"))
    for changed in range(len(SENTENCE)):
        future = movement(lm, changed, lambda tokens: lm(tokens)[0][:, 0])
        past = movement(lm, changed, lambda tokens: lm(tokens)[0][:, 1])
        assert torch.equal(future > 1e-5, torch.arange(len(SENTENCE)) >= changed)
        assert torch.equal(past > 1e-5, torch.arange(len(SENTENCE)) <= changed)


def test_all_three_targets_are_predicted_in_the_order_self_future_past(make_cloze: Any) -> None:
    lm = make_cloze(targets=("self", "future", "past"))
    positions = torch.arange(len(SENTENCE))
    for index, expected in enumerate((positions != 3, positions >= 3, positions <= 3)):
        moved = movement(lm, 3, lambda tokens, index=index: lm(tokens)[0][:, index])  # type: ignore[misc]
        assert torch.equal(moved > 1e-5, expected)
