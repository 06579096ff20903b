"""Attention of our own for CPUs: PyTorch's numbers, exact gradients, dropout of weights."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from lmfusion.kernels import attention as cpu_attention
from lmfusion.kernels.attention import attention, causal_attention

BATCH, HEADS, QUERIES, KEYS, CHANNELS = 2, 2, 3, 4, 2


def inputs(queries: int = QUERIES, keys: int = KEYS, dtype: torch.dtype = torch.float64) -> list[Tensor]:
    """Query, key and value that want gradients; views as of one projection, not contiguous."""
    torch.manual_seed(1)
    return [
        torch.randn(BATCH, time, HEADS, CHANNELS, dtype=dtype).transpose(1, 2).requires_grad_()
        for time in (queries, keys, keys)
    ]


def some_visible() -> Tensor:
    """Every query sees the first key and some others; other ones in every sentence."""
    visible = torch.rand(BATCH, 1, QUERIES, KEYS, generator=torch.Generator().manual_seed(2)) >= 0.5
    visible[..., 0] = True
    return visible


def brute_force(query: Tensor, key: Tensor, value: Tensor, visible: Tensor, scale: float) -> Tensor:
    """One query at a time, with Python's own exp."""
    visible = visible.expand(*query.shape[:3], key.size(2))
    result = torch.zeros_like(query)
    for b, h, t in torch.cartesian_prod(*(torch.arange(size) for size in query.shape[:3])).tolist():
        seen = [s for s in range(key.size(2)) if visible[b, h, t, s]]
        weights = [math.exp(scale * float(query[b, h, t] @ key[b, h, s])) for s in seen]
        for s, weight in zip(seen, weights):
            result[b, h, t] += weight / sum(weights) * value[b, h, s]
    return result


@pytest.fixture(params=[True, False], ids=["written out", "PyTorch's"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both ways, whatever the dropout."""
    monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: request.param)
    return bool(request.param)


@pytest.fixture
def written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of our own alone."""
    monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout: True)


@pytest.mark.parametrize("scale", [None, 1.0])
def test_it_is_the_attention_of_the_definition(chosen: bool, scale: float | None) -> None:
    query, key, value = (tensor.detach() for tensor in inputs())
    found = attention(query, key, value, some_visible(), scale=scale)
    expected = brute_force(query, key, value, some_visible(), 1 / math.sqrt(CHANNELS) if scale is None else scale)
    assert (found - expected).abs().max() < 1e-12


def test_causal_attention_sees_no_later_position(chosen: bool) -> None:
    query, key, value = (tensor.detach() for tensor in inputs(6, 6))
    earlier = torch.tensor([[s <= t for s in range(6)] for t in range(6)])
    expected = brute_force(query, key, value, earlier, 1 / math.sqrt(CHANNELS))
    assert (causal_attention(query, key, value, dropout=0.0) - expected).abs().max() < 1e-12


@pytest.mark.parametrize("scale", [None, 1.0])
@pytest.mark.parametrize("dropout", [0.0, 0.3])
def test_gradients_are_those_of_the_function(chosen: bool, dropout: float, scale: float | None) -> None:
    def run(*tensors: Tensor) -> Tensor:
        torch.manual_seed(3)  # the same weights are dropped every time
        return attention(*tensors, some_visible(), dropout=dropout, scale=scale)

    assert torch.autograd.gradcheck(run, inputs())


@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_with_the_dropout_off_it_is_pytorchs_attention(written_out: None, dropout: float) -> None:
    query, key, value = (tensor.detach().float() for tensor in inputs(40, 40))
    expected = F.scaled_dot_product_attention(query, key, value, is_causal=True)
    found = causal_attention(query, key, value, dropout=dropout)
    assert torch.allclose(found, expected, atol=1e-6) is (dropout == 0.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_it_is_as_exact_as_attention_written_out_in_pytorch(written_out: None, dtype: torch.dtype) -> None:
    tensors = [tensor.detach().to(dtype) for tensor in inputs(40, 40)]
    grad = torch.randn(BATCH, HEADS, 40, CHANNELS).to(dtype)

    def with_gradients(function: Any, dtype: torch.dtype) -> list[Tensor]:
        leaves = [tensor.to(dtype, copy=True).requires_grad_() for tensor in tensors]
        result = function(*leaves)
        result.backward(grad.to(dtype))
        return [result.detach().double(), *(leaf.grad.double() for leaf in leaves)]

    def pytorchs(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        later = torch.ones(40, 40, dtype=torch.bool).triu(1)
        scores = (query @ key.transpose(-1, -2) / math.sqrt(CHANNELS)).masked_fill(later, -math.inf)
        return torch.softmax(scores, -1) @ value

    exact = with_gradients(pytorchs, torch.float64)
    ours = with_gradients(lambda *leaves: causal_attention(*leaves, dropout=0.0), dtype)
    theirs = with_gradients(pytorchs, dtype)
    for one, other, right in zip(ours, theirs, exact):
        assert (one - right).square().mean().sqrt() < 1.5 * (other - right).square().mean().sqrt()


def test_weights_are_dropped_with_the_given_probability_and_the_others_scaled_up(written_out: None) -> None:
    torch.manual_seed(1)
    time, dropout = 60, 0.3
    query, key = torch.randn(2, 20, 8, time, 16).unbind()
    weights = causal_attention(query, key, torch.eye(time).expand(20, 8, -1, -1), dropout=0.0)
    dropped = causal_attention(query, key, torch.eye(time).expand(20, 8, -1, -1), dropout=dropout)
    visible = torch.ones(time, time, dtype=torch.bool).tril().expand_as(weights)
    assert not dropped[~visible].any()
    kept = dropped != 0
    assert torch.allclose(dropped[kept], weights[kept] / (1 - dropout), rtol=1e-4)
    n = int(visible.sum())
    assert abs(int(kept.sum()) - n * (1 - dropout)) < 5 * math.sqrt(n * dropout * (1 - dropout))
    of_head = kept.float().sum((0, 2, 3)) / visible.float().sum((0, 2, 3))
    assert (of_head - (1 - dropout)).abs().max() < 5 * math.sqrt(dropout * (1 - dropout) / (n / 8))


def test_another_pass_drops_other_weights() -> None:
    query, key, value = inputs(40, 40)
    first, second = (causal_attention(query, key, value, dropout=0.5) for _ in range(2))
    assert not torch.equal(first, second)


@pytest.mark.parametrize(
    ("dtype", "dropout", "expected"),
    [
        (torch.float32, 0.1, True),
        (torch.float32, 0.0, False),
        (torch.float64, 0.1, True),
        (torch.bfloat16, 0.0, True),
        (torch.float32, 1.0, False),
    ],
)
def test_where_pytorchs_kernel_serves_it_stays(dtype: torch.dtype, dropout: float, expected: bool) -> None:
    assert cpu_attention.is_faster(torch.empty(1, 1, 1, 1, dtype=dtype), dropout) is expected


@torch.no_grad()
def test_without_a_pass_backward_pytorchs_kernel_is_as_fast_in_bfloat16() -> None:
    assert not cpu_attention.is_faster(torch.empty(1, 1, 1, 1, dtype=torch.bfloat16), 0.0)


def test_on_other_devices_pytorchs_kernel_stays() -> None:
    assert not cpu_attention.is_faster(torch.empty(1, 1, 1, 1, device="meta"), 0.1)


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_a_language_model_is_the_same_with_it_and_without(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    lm = request.getfixturevalue(kind)(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0).train()
    tokens = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 2, 1, 1], [2, 4, 2, 1, 1, 1]])
    found = []
    for own in (True, False):
        monkeypatch.setattr(cpu_attention, "is_faster", lambda query, dropout, own=own: own)
        lm.zero_grad()
        logits = lm(tokens)[0][tokens != 1]
        logits.log_softmax(-1)[:, 5].sum().backward()
        found.append([logits, *(p.grad for p in lm.parameters() if p.grad is not None)])
    assert len(found[0]) == len(found[1]) > 10
    for one, other in zip(*found):
        assert torch.allclose(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("flags", [{}, {"no_bias_kv": True}, {"no_extra_kv": True}], ids=str)
def test_projections_of_a_frozen_lm_are_not_multiplied_row_by_row(make_cloze: Any, flags: dict[str, Any]) -> None:
    """What is left behind the extra key and value has gaps in memory; attention makes products of three dimensions."""
    lm = make_cloze(decoder_attention_heads=1, **flags).to(torch.bfloat16).eval().requires_grad_(False)
    tokens = torch.randint(4, 20, (3, 7))
    with torch.profiler.profile(record_shapes=True) as profile, torch.no_grad():
        lm.layer_states(tokens)
    weights = [event.input_shapes[1][1:] for event in profile.events() if event.name == "aten::bmm"]
    assert [16, 16] not in weights
    assert any(event.name in ("aten::addmm", "aten::mm") for event in profile.events())
