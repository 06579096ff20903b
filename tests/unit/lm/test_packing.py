"""Words without padding: what is computed word by word gives the same states and gradients, and padding nothing."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.lm.transformer import layout as layouts
from lmfusion.lm.transformer.layout import RowLayout

TOKENS = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 2, 1, 1], [2, 4, 2, 1, 1, 1]])
PADDED_LEFT = torch.tensor([[2, 5, 6, 7, 8, 2], [1, 1, 2, 9, 5, 2], [1, 1, 1, 2, 4, 2]])
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def test_packed_are_the_words_row_by_row_and_unpacked_has_zeros_at_padding() -> None:
    layout = RowLayout(TOKENS.eq(1))
    states = torch.arange(1.0, 37.0).view(3, 6, 2)
    packed = layout.pack(states)
    assert torch.equal(packed, torch.cat([states[0], states[1, :4], states[2, :3]]))
    assert torch.equal(layout.unpack(packed), states.masked_fill(TOKENS.eq(1).unsqueeze(-1), 0.0))


def test_gradients_go_where_states_came_from() -> None:
    layout = RowLayout(TOKENS.eq(1))
    states = torch.randn(3, 6, 2, dtype=torch.double, requires_grad=True)
    packed = torch.randn(13, 2, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(layout.pack, states)
    assert torch.autograd.gradcheck(layout.unpack, packed)


def with_padding(count: int) -> RowLayout:
    """A hundred positions, so many of which are padding."""
    mask = torch.zeros(5, 20, dtype=torch.bool)
    mask[0, 20 - count :] = True
    return RowLayout(mask)


@pytest.mark.parametrize(("count", "packs"), [(0, False), (7, False), (8, True), (15, True)])
def test_little_padding_stays_where_it_is(count: int, packs: bool) -> None:
    layout, states = with_padding(count), torch.randn(5, 20, 3)
    assert layout.packs is packs
    assert layout.pack(states).shape == ((100 - count, 3) if packs else (5, 20, 3))
    if not packs:
        assert layout.unpack(states) is states


def test_a_row_of_padding_only_and_a_batch_of_it() -> None:
    states = torch.randn(2, 3, 4)
    for mask in (torch.tensor([[True] * 3, [False] * 3]), torch.ones(2, 3, dtype=torch.bool)):
        layout = RowLayout(mask)
        expected = states.masked_fill(mask.unsqueeze(-1), 0.0)
        assert torch.equal(layout.unpack(layout.pack(states)), expected)


def states_and_gradients(lm: Any, tokens: Tensor) -> list[Tensor]:
    """Of words, in training."""
    lm.zero_grad()
    found = [*lm.layer_states(tokens), lm.top_state(tokens), lm(tokens)[0]]
    found = [state[..., tokens.ne(1), :] for state in found]
    sum(state.square().sum() for state in found).backward()
    return found + [p.grad for p in lm.parameters() if p.grad is not None]


@pytest.mark.parametrize("tokens", [TOKENS, PADDED_LEFT], ids=["padded on the right", "padded on the left"])
@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_a_language_model_is_the_same_with_it_and_without(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str, tokens: Tensor
) -> None:
    lm = request.getfixturevalue(kind)(**QUIET).train()
    found = []
    for much in (0.0, 1.0):
        monkeypatch.setattr(layouts, "MUCH_PADDING", much)
        found.append(states_and_gradients(lm, tokens))
    assert len(found[0]) == len(found[1]) > 20
    for one, other in zip(*found):
        assert torch.allclose(one, other, atol=1e-5, rtol=1e-5)


def test_padding_is_not_computed_with(make_causal: Any) -> None:
    lm, seen = make_causal(), []
    for block in lm.layers:
        block.ffn.fc1.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].shape[:-1]))
    lm.top_state(TOKENS)
    assert set(seen) == {(13,)}
