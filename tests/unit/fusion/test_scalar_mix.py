"""The mix against a float64 NumPy calculation: gamma * sum softmax(lambda)_i LN(h_i)."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from lmfusion.fusion.scalar_mix import ScalarMix

Array = npt.NDArray[np.float64]


def oracle(mix: ScalarMix, states: list[torch.Tensor], kept: Array | None = None) -> Array:
    """Every step spelled out; ``kept`` multiplies the shares."""
    raw = mix.weights.detach().double().numpy()
    shares = np.exp(raw) / np.exp(raw).sum() * (1.0 if kept is None else kept)
    total: Array = np.zeros(states[0].shape)
    for share, state in zip(shares, states):
        h = state.double().numpy()
        centred = h - h.mean(-1, keepdims=True)
        normal = centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5)
        if mix.layer_norm.weight is not None:
            scale, shift = (p.detach().double().numpy() for p in (mix.layer_norm.weight, mix.layer_norm.bias))
            normal = normal * scale + shift
        total += share * normal
    result: Array = mix.gamma.item() * total
    return result


def mix_and_states(affine: bool, shake: Any, dropout: float = 0.0) -> tuple[ScalarMix, list[torch.Tensor]]:
    mix = ScalarMix(4, 6, dropout=dropout, affine=affine)
    with torch.no_grad():
        mix.weights.copy_(torch.tensor([0.3, -1.2, 2.0, 0.1]))
        mix.gamma.fill_(0.37)
    return shake(mix), [3 * torch.randn(2, 5, 6) + index for index in range(4)]


@pytest.mark.parametrize("affine", [False, True])
def test_mix_is_the_published_formula(affine: bool, shake: Any) -> None:
    mix, states = mix_and_states(affine, shake)
    assert (mix.layer_norm.weight is not None) == affine
    np.testing.assert_allclose(mix(states).detach().numpy(), oracle(mix, states), rtol=0, atol=1e-5)


def test_fresh_mix_is_the_plain_mean_of_normalized_states() -> None:
    """gamma starts at 1 and all lambda are equal."""
    states = [torch.randn(2, 3, 6) for _ in range(5)]
    mean = torch.stack([torch.nn.functional.layer_norm(state, (6,)) for state in states]).mean(0)
    for affine in (False, True):
        torch.testing.assert_close(ScalarMix(5, 6, dropout=0.0, affine=affine)(states), mean)


def test_shares_sum_to_one(shake: Any) -> None:
    mix, _ = mix_and_states(False, shake)
    assert mix.shares().sum().item() == pytest.approx(1)
    assert len(set(mix.shares().tolist())) == 4


@pytest.mark.parametrize("affine", [False, True])
def test_dropout_leaves_whole_states_out_and_scales_the_others_up(affine: bool, shake: Any) -> None:
    mix, states = mix_and_states(affine, shake, dropout=0.5)
    possible = [oracle(mix, states, 2.0 * np.array([(n >> i) & 1 for i in range(4)])) for n in range(16)]
    seen = set()
    for _ in range(60):
        found = mix.train()(states).detach().numpy()
        distances = [np.abs(found - candidate).max() for candidate in possible]
        assert min(distances) < 1e-5
        seen.add(int(np.argmin(distances)))
    assert len(seen) > 8


def test_dropout_is_off_outside_training(shake: Any) -> None:
    mix, states = mix_and_states(True, shake, dropout=0.9)
    np.testing.assert_allclose(mix.eval()(states).detach().numpy(), oracle(mix, states), rtol=0, atol=1e-5)


@pytest.mark.parametrize("given", [3, 5])
def test_wrong_number_of_states(given: int) -> None:
    with pytest.raises(ValueError, match=f"{given} states were given to a mix of 4"):
        ScalarMix(4, 6, dropout=0.0, affine=False)([torch.zeros(1, 1, 6)] * given)


@pytest.mark.parametrize("affine", [False, True])
def test_everything_learned_gets_a_gradient(affine: bool, shake: Any) -> None:
    mix, states = mix_and_states(affine, shake)
    (mix(states) * torch.randn(6)).sum().backward()
    names = {name for name, p in mix.named_parameters() if p.grad is not None and p.grad.abs().sum() > 0}
    learned = {"weights", "gamma"} | ({"layer_norm.weight", "layer_norm.bias"} if affine else set())
    assert names == learned == {name for name, _ in mix.named_parameters()}


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_in_half_precision_only_states_and_result_are_rounded(dtype: torch.dtype) -> None:
    """Fifteen states of the paper's size: normalized in half precision, mixed in float32."""
    states = [3 * torch.randn(4, 5, 64) for _ in range(15)]
    mix = ScalarMix(15, 64, dropout=0.0, affine=False).to(dtype)
    with torch.no_grad():
        mix.weights.copy_(torch.randn(15))
    given = [state.to(dtype) for state in states]
    expected = oracle(mix, given)
    step = torch.finfo(dtype).eps
    found = mix(given)
    assert found.dtype == dtype
    shares = np.exp(mix.weights.detach().double().numpy())
    bound = step * (np.abs(expected).max() + 3 * 4 * shares.max() / shares.sum() + 1)
    assert np.abs(found.detach().double().numpy() - expected).max() < bound
