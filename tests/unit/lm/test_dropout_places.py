"""Where the towers and the joining block drop: at a rate of almost one it is as if they were not there."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

ALMOST_ONE = 1 - 2**-16
RATES = ("dropout", "attention_dropout", "activation_dropout")
TOKENS = torch.tensor([[2, 5, 9, 4, 2]])
OTHER = torch.tensor([[2, 7, 9, 4, 2]])


@pytest.fixture(params=["make_cloze", "make_causal"])
def make(request: pytest.FixtureRequest) -> Any:
    """Build a tiny language model in training mode where only the named place drops."""
    build = request.getfixturevalue(request.param)
    return lambda place: build(**{**dict.fromkeys(RATES, 0.0), place: ALMOST_ONE}).train()


def states(lm: Any, tokens: Tensor) -> dict[str, Tensor]:
    """Every layer's, by name."""
    torch.manual_seed(1)
    with torch.no_grad():
        return dict(zip(lm.state_names, lm.layer_states(tokens)))


def test_embeddings_and_the_output_of_every_sub_block_are_dropped(make: Any) -> None:
    """So nothing is left in a block's output, which is a sum of them; of the joining block's nothing either."""
    lm = make("dropout")
    found = states(lm, TOKENS)
    found.pop("context", None)  # a sum of two layer norms
    assert found
    assert all(state.eq(0).all() for state in found.values()), [name for name, s in found.items() if s.any()]
    assert all(state.any() for state in states(lm.eval(), TOKENS).values())


def test_attention_weights_are_dropped(make: Any) -> None:
    """So no position of a tower knows of another, and the joining block gives the same everywhere."""
    lm = make("attention_dropout")
    first, second = states(lm, TOKENS), states(lm, OTHER)
    for name, state in first.items():
        if name == "joined":
            assert torch.equal(state, state[:, :1].expand_as(state)), name
        elif name != "context":
            assert torch.equal(state[:, 2:], second[name][:, 2:]), name
    kept = states(lm.eval(), TOKENS)
    other = states(lm, OTHER)
    top = lm.state_names[-1]
    assert (kept[top][:, 2:] - other[top][:, 2:]).abs().amax(-1).gt(1e-4).all()


def test_what_the_relu_lets_pass_is_dropped(make: Any) -> None:
    """So the first matrix of the feed-forward sub-blocks changes nothing."""
    lm = make("activation_dropout")
    changed = make("activation_dropout")
    changed.load_state_dict(lm.state_dict())
    for name, weight in changed.named_parameters():
        if ".fc1." in name:
            weight.data.mul_(-2)
    first, second = states(lm, TOKENS), states(changed, TOKENS)
    assert all(torch.equal(state, second[name]) for name, state in first.items())
    assert not torch.allclose(
        states(lm.eval(), TOKENS)[lm.state_names[-1]], states(changed.eval(), TOKENS)[lm.state_names[-1]]
    )
