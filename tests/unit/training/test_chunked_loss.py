"""The chunked cross-entropy against fairseq's on all logits: the same numbers, without a tensor of all logits."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.criterions.label_smoothed_cross_entropy import label_smoothed_nll_loss
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from lmfusion.training.chunked_loss import ChunkedLoss, chunked_cross_entropy

PAD, TYPES, CHANNELS = 1, 50, 8


def problem(dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor, Tensor]:
    """Features (3 x 7 x C), output embeddings (V x C) and targets, 6 of 21 of them padding."""
    features = torch.randn(3, 7, CHANNELS, dtype=torch.float64).to(dtype).requires_grad_()
    weight = torch.randn(TYPES, CHANNELS, dtype=torch.float64).to(dtype).requires_grad_()
    target = torch.randint(4, TYPES, (3, 7))
    target[0, 3:] = target[2, 5:] = PAD
    return features, weight, target


def fairseqs(features: Tensor, weight: Tensor, target: Tensor, epsilon: float) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, loss without smoothing and correct predictions, by way of all logits."""
    scores = F.linear(features, weight).log_softmax(-1).flatten(0, -2)
    loss, nll = label_smoothed_nll_loss(scores, target.flatten(), epsilon, ignore_index=PAD)
    real = target.flatten().ne(PAD)
    return loss, nll, (scores.argmax(-1).eq(target.flatten()) & real).sum()


def ours(features: Tensor, weight: Tensor, target: Tensor, epsilon: float = 0.0, **settings: Any) -> ChunkedLoss:
    settings = {"padding_idx": PAD, "label_smoothing": epsilon, "count_correct": True, **settings}
    return chunked_cross_entropy(features, weight, target, **settings)


@pytest.mark.parametrize("chunk", [1, 4, 15, 0], ids=lambda chunk: f"chunk {chunk}")
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
@pytest.mark.parametrize(("dtype", "error"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
def test_loss_and_gradients_are_fairseqs(dtype: torch.dtype, error: float, epsilon: float, chunk: int) -> None:
    """15 tokens count: chunks that divide them and chunks that do not."""
    features, weight, target = problem(dtype)
    target[1] = F.linear(features, weight)[1].argmax(-1)  # some predictions are correct
    loss, nll, correct = fairseqs(features, weight, target, epsilon)
    found = ours(features, weight, target, epsilon, chunk_tokens=chunk)
    torch.testing.assert_close(found.loss, loss, rtol=error, atol=0)
    torch.testing.assert_close(found.nll, nll, rtol=error, atol=0)
    assert found.correct.item() == correct.item() >= 7
    expected = torch.autograd.grad(loss, (features, weight))
    for gradient, wanted in zip(torch.autograd.grad(found.loss, (features, weight)), expected):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=error)


@pytest.mark.parametrize("chunk", [4, 0], ids=lambda chunk: f"chunk {chunk}")
@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_on_a_gpu_padding_is_masked_without_a_wait_and_counts_nothing(
    as_on_a_gpu: Any, epsilon: float, chunk: int
) -> None:
    """Features at padding may be anything, even no number; a target that pads may be outside of the vocabulary."""
    features, weight, target = problem()
    target[1] = F.linear(features, weight)[1].argmax(-1)
    loss, nll, correct = fairseqs(features, weight, target, epsilon)
    expected = torch.autograd.grad(loss, (features, weight))
    padding = target.eq(PAD)
    spoilt = features.detach().masked_fill(padding.unsqueeze(-1), torch.nan).requires_grad_()
    with as_on_a_gpu() as waits:
        settings = {"padding_idx": -100, "chunk_tokens": chunk}
        found = ours(spoilt, weight, target.masked_fill(padding, -100), epsilon, **settings)
        gradients = torch.autograd.grad(found.loss, (spoilt, weight))
    assert waits.found == []
    torch.testing.assert_close(found.loss, loss, rtol=1e-10, atol=0)
    torch.testing.assert_close(found.nll, nll, rtol=1e-10, atol=0)
    assert found.correct.item() == correct.item() >= 7
    for gradient, wanted in zip(gradients, expected):
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=1e-10)
    assert not gradients[0][padding].any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_on_a_gpu_half_precision_is_as_exact_as_on_a_cpu(request: pytest.FixtureRequest, dtype: torch.dtype) -> None:
    features, weight, target = problem(dtype)
    found = []
    for _ in range(2):
        loss = ours(features, weight, target, 0.1, chunk_tokens=4).loss
        found.append([loss, *torch.autograd.grad(loss, (features, weight))])
        request.getfixturevalue("as_on_a_gpu")
    for one, other in zip(*found):
        torch.testing.assert_close(one, other, rtol=0.02, atol=0.02)


def test_output_embeddings_that_are_also_input_embeddings_get_both_gradients() -> None:
    _, weight, target = problem()
    expected = torch.autograd.grad(fairseqs(F.embedding(target, weight), weight, target, 0.1)[0], weight)[0]
    found = torch.autograd.grad(ours(F.embedding(target, weight), weight, target, 0.1).loss, weight)[0]
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-10)


def test_only_padding_is_no_loss_and_no_gradient() -> None:
    features, weight, target = problem()
    found = ours(features, weight, torch.full_like(target, PAD), 0.1)
    found.loss.backward()
    assert found.loss.item() == found.nll.item() == found.correct.item() == 0
    assert features.grad is not None
    assert weight.grad is not None
    assert not features.grad.any()
    assert not weight.grad.any()


def test_a_factor_of_the_loss_is_one_of_the_gradients_and_a_second_backward_is_refused() -> None:
    features, weight, target = problem()
    (once,) = torch.autograd.grad(ours(features, weight, target).loss, weight)
    loss = ours(features, weight, target).loss
    (thrice,) = torch.autograd.grad(3 * loss, weight, retain_graph=True)
    torch.testing.assert_close(thrice, 3 * once)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_frozen_tensors_and_evaluation_get_no_gradients() -> None:
    features, weight, target = problem()
    ours(features, weight.detach(), target).loss.backward()
    assert features.grad is not None
    ours(features.detach(), weight, target).loss.backward()
    assert weight.grad is not None
    with torch.no_grad():
        found = ours(features, weight, target, 0.1)
    assert not found.loss.requires_grad
    torch.testing.assert_close(found.loss, fairseqs(features, weight, target, 0.1)[0])


class _Largest(TorchDispatchMode):
    """The most elements that a tensor made under it has."""

    elements = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = function(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, Tensor)]
        self.elements = max([self.elements, *sizes])
        return made


@pytest.mark.parametrize("training", [True, False])
def test_no_tensor_is_larger_than_a_chunk_of_logits(training: bool) -> None:
    features, weight = torch.randn(640, 4, requires_grad=training), torch.randn(1000, 4, requires_grad=training)
    target = torch.randint(4, 1000, (640,))
    with _Largest() as largest:
        found = ours(features, weight, target, 0.1, chunk_tokens=16)
        if training:
            found.loss.backward()
    assert largest.elements == 16 * 1000


def test_a_chunk_of_its_own_choice_fits_into_24_mebibytes() -> None:
    features, weight = torch.randn(600, 2), torch.randn(20_000, 2)
    with _Largest() as largest:
        ours(features, weight, torch.full((600,), 5))
    assert 24 * 2**20 - 4 * 20_000 < 4 * largest.elements <= 24 * 2**20


def test_bf16_differs_from_float32_by_rounding() -> None:
    half, half_weight, target = problem(torch.bfloat16)
    single, weight = (tensor.detach().float().requires_grad_() for tensor in (half, half_weight))
    expected, _, _ = fairseqs(single, weight, target, 0.1)
    found = ours(half, half_weight, target, 0.1, chunk_tokens=4)
    assert found.loss.dtype == torch.float32
    torch.testing.assert_close(found.loss, expected, rtol=5e-3, atol=0)
    gradients = torch.autograd.grad(found.loss, (half, half_weight))
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, (single, weight))):
        assert gradient.dtype == torch.bfloat16
        torch.testing.assert_close(gradient.float(), wanted, rtol=0, atol=0.02 * wanted.abs().max().item())


def test_small_terms_of_the_weights_gradient_are_not_lost_in_half_precision() -> None:
    """A sum of 900 equal terms stops growing at 256 of them if it is itself bf16."""
    features = torch.full((900, 1), 1.0, dtype=torch.bfloat16)
    weight = torch.zeros(8, 1, dtype=torch.bfloat16, requires_grad=True)
    ours(features, weight, torch.full((900,), 5), chunk_tokens=1).loss.backward()
    assert weight.grad is not None
    assert weight.grad[0].item() == pytest.approx(900 / 8, rel=0.01)
    assert weight.grad[5].item() == pytest.approx(-900 * 7 / 8, rel=0.01)


def test_autocast_takes_products_in_bf16_and_leaves_gradients_single() -> None:
    features, weight, target = problem(torch.float32)
    exact = torch.autograd.grad(ours(features, weight, target).loss, (features, weight))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = ours(features, weight, target)
    for gradient, wanted in zip(torch.autograd.grad(found.loss, (features, weight)), exact):
        assert gradient.dtype == torch.float32
        assert not torch.equal(gradient, wanted)
        torch.testing.assert_close(gradient, wanted, rtol=0, atol=0.02 * wanted.abs().max().item())


def test_the_loss_scale_keeps_small_fp16_gradients_from_vanishing() -> None:
    """Improbable types (p = 1e-9) have gradients below what fp16 can hold (6e-8), which fairseq's loss scale is for."""
    weight = torch.zeros(6, 1, dtype=torch.float16)
    weight[5] = 20.7
    features = torch.ones(4, 1, dtype=torch.float16)
    weight.requires_grad_()
    loss = ours(features, weight, torch.full((4,), 5), chunk_tokens=3).loss
    (2.0**14 * loss).backward()
    single = weight.detach().double().requires_grad_()
    exact = torch.autograd.grad(2.0**14 * fairseqs(features.double(), single, torch.full((4,), 5), 0.0)[0], single)[0]
    assert weight.grad is not None
    assert exact[0] / 2.0**14 < 6e-9
    torch.testing.assert_close(weight.grad[:5].double(), exact[:5], rtol=0.02, atol=0)


def test_shapes_that_do_not_fit_are_refused() -> None:
    features, weight, target = problem()
    with pytest.raises(ValueError, match="do not fit together"):
        ours(features, weight, target[:, 1:])
