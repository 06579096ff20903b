"""Dropout on a CPU: the same distribution as PyTorch's, one mask for both passes, nothing changed elsewhere."""

from __future__ import annotations

import math

import pytest
import torch
import torch.nn.functional as F
from fairseq.modules import FairseqDropout
from torch import nn

from lmfusion.kernels.dropout import FastDropout, dropout, relu_dropout, use_fast_dropout

TYPES = [torch.float32, torch.float64, torch.bfloat16, torch.float16]


@pytest.mark.parametrize("probability", [0.001, 0.05, 0.1, 0.3, 0.5, 0.9])
def test_elements_are_zeroed_with_the_given_probability(probability: float) -> None:
    torch.manual_seed(1)
    n = 1_000_000
    zeroed = int((dropout(torch.ones(n), probability) == 0).sum())
    five_sigma = 5 * math.sqrt(n * probability * (1 - probability))
    assert abs(zeroed - n * probability) < five_sigma + n / 2**17  # the latter: the step of the probability


@pytest.mark.parametrize("dtype", TYPES)
def test_kept_elements_are_scaled_so_that_the_mean_stays(dtype: torch.dtype) -> None:
    torch.manual_seed(1)
    x = torch.full((1000, 37), 3.0, dtype=dtype)
    y = dropout(x, 0.1)
    assert y.dtype == dtype
    assert set(y.unique().tolist()) == {0.0, float(torch.tensor(3.0 * 65536 / (65536 - 6554), dtype=dtype))}


def test_neighbours_and_the_four_parts_of_a_random_number_are_independent() -> None:
    torch.manual_seed(1)
    kept = (dropout(torch.ones(1_000_000), 0.3) != 0).double().view(-1, 4)
    correlation = torch.corrcoef(torch.cat([kept[:-1], kept[1:]], 1).T) - torch.eye(8, dtype=torch.double)
    assert correlation.abs().max() < 0.01  # 5 / sqrt(250,000)
    assert (kept.mean(0) - 0.7).abs().max() < 0.005


@pytest.mark.parametrize("shape", [(), (1,), (3, 5, 7), (4, 0, 2)])
def test_any_shape_and_layout_is_taken(shape: tuple[int, ...]) -> None:
    assert dropout(torch.ones(shape), 0.5).shape == shape
    assert dropout(torch.ones(6, 5).t(), 0.5).shape == (5, 6)


def test_the_gradient_passes_where_the_element_was_kept_with_the_same_scale() -> None:
    x = torch.randn(50, 41, requires_grad=True)
    y = dropout(x, 0.25)
    grad = torch.randn_like(x)
    y.backward(grad)
    expected = torch.where(y != 0, grad / 0.75, torch.zeros(()))
    assert torch.allclose(x.grad, expected, atol=0, rtol=1e-6)


def test_the_same_seed_gives_the_same_mask_and_another_seed_another() -> None:
    x, masks = torch.ones(1000), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        masks.append(dropout(x, 0.5))
    assert torch.equal(masks[0], masks[1])
    assert not torch.equal(masks[0], masks[2])


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("probability", [0.0, 0.05, 0.5, 1.0])
@pytest.mark.parametrize("dtype", TYPES)
def test_relu_with_dropout_is_one_after_the_other(dtype: torch.dtype, probability: float, training: bool) -> None:
    values = torch.cat([torch.randn(1000), torch.tensor([0.0, -0.0, -math.inf, 1e-30])]).to(dtype)
    grad, found = torch.randn(1004).to(dtype), []
    for function in (relu_dropout, lambda x, *rest: dropout(F.relu(x), *rest)):
        torch.manual_seed(1)
        x = values.clone().requires_grad_()
        y = function(x, probability, training)
        y.backward(grad)
        found.append((y.detach(), x.grad))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])


@pytest.mark.parametrize(("probability", "training"), [(0.0, True), (0.5, False)])
def test_nothing_is_dropped_at_probability_zero_or_in_evaluation(probability: float, training: bool) -> None:
    x = torch.randn(10)
    assert dropout(x, probability, training) is x


def test_everything_is_dropped_at_probability_one() -> None:
    assert torch.equal(dropout(torch.ones(10), 1.0), torch.zeros(10))


def test_all_but_everything_is_dropped_just_below_one() -> None:
    assert bool(dropout(torch.ones(1000), 1 - 1e-7).isfinite().all())


def test_every_dropout_of_a_fairseq_model_is_replaced_and_keeps_its_settings() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.ModuleList([FairseqDropout(0.25, "inner")]))
    model[1][0].apply_during_inference = True
    names = list(model.state_dict())
    use_fast_dropout(model.eval())
    fast = model[1][0]
    assert isinstance(fast, FastDropout)
    assert (fast.p, fast.module_name) == (0.25, "inner")
    assert list(model.state_dict()) == names
    torch.manual_seed(1)
    assert 200 < int((fast(torch.ones(1000)) == 0).sum()) < 300  # also in evaluation, as it was told
