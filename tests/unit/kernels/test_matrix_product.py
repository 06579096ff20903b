"""Float32 products by oneDNN: the same numbers as exact ones, the same gradients, and nothing else touched."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lmfusion.kernels import matrix_product
from lmfusion.kernels.matrix_product import MIN_ROWS, Linear, add_product, linear, product, use_fast_products

SHAPES = [(2, 1, 1), (2, 256, 100), (40, 7, 33), (1517, 256, 100)]
KINDS = {"Zen 5": (True, True), "Zen 4": (True, False), "others": (False, False)}
"""Whether oneDNN is faster, and for gradients of weights too."""


@pytest.fixture(params=KINDS.values(), ids=KINDS)
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, set_processor: Callable[..., None]) -> None:
    """All kinds of processors on any, and no product too small."""
    set_processor(*request.param)
    monkeypatch.setattr(matrix_product, "MIN_ROWS", 1)


def close(found: torch.Tensor, exact: torch.Tensor, terms: int) -> bool:
    """Within the rounding of sums of so many products of normal numbers in float32."""
    return bool((found.double() - exact).abs().max() < 2e-6 * max(1.0, terms**0.5) * 5)


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_products_are_those_in_float64(chosen: None, rows: int, inner: int, columns: int) -> None:
    torch.manual_seed(1)
    left, right, total = torch.randn(rows, inner), torch.randn(inner, columns), torch.randn(rows, columns)
    exact = left.double() @ right.double()
    assert close(product(left, right), exact, inner)
    assert close(product(left, right, out=torch.empty(rows, columns)), exact, inner)
    assert close(product(left.t().contiguous().t(), right.t().contiguous().t()), exact, inner)
    sum_ = total.clone()
    add_product(sum_, left, right)
    assert close(sum_, total.double() + exact, inner)


@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_a_linear_layer_and_its_gradients_are_those_in_float64(
    chosen: None, rows: int, inner: int, columns: int, has_bias: bool
) -> None:
    torch.manual_seed(1)
    layer = Linear(inner, columns, bias=has_bias)
    x = torch.randn(2, rows // 2, inner, requires_grad=True)
    grad = torch.randn(2, rows // 2, columns)
    found = layer(x)
    found.backward(grad)
    exact = [tensor.detach().double().requires_grad_() for tensor in (x, *layer.parameters())]
    expected = F.linear(*exact)
    expected.backward(grad.double())
    assert close(found, expected, inner)
    for tensor, other in zip((x, *layer.parameters()), exact):
        assert tensor.grad is not None
        assert tensor.grad.shape == tensor.shape
        assert close(tensor.grad, other.grad, max(rows, columns))


@pytest.mark.parametrize("rows", [2, 5, 40, 200])
def test_without_gradients_it_is_the_same_to_the_last_digit(chosen: None, rows: int) -> None:
    layer, x = Linear(256, 100), torch.randn(rows, 3, 256)
    given = layer(x)
    assert given.requires_grad
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            assert torch.equal(layer(x), given)


def test_a_compiled_layer_is_one_graph_of_pytorchs_own(chosen: None) -> None:
    layer, x = Linear(8, 6), torch.randn(4, 8)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x), atol=1e-6)


def test_the_result_may_be_changed_in_place(chosen: None) -> None:
    layer, x = Linear(8, 6), torch.randn(4, 8, 8)
    result = layer(x)
    result *= 3.0  # as fairseq scales queries
    result.sum().backward()
    found = layer.weight.grad
    layer.weight.grad = None
    (3.0 * F.linear(x, layer.weight, layer.bias)).sum().backward()
    assert torch.allclose(found, layer.weight.grad, rtol=1e-5)


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_what_is_frozen_gets_no_gradient(chosen: None, frozen: str) -> None:
    tensors = {"x": torch.randn(40, 8), "weight": torch.randn(6, 8), "bias": torch.randn(6)}
    for name, tensor in tensors.items():
        tensor.requires_grad_(name != frozen)
    linear(**tensors).sum().backward()
    assert {name for name, tensor in tensors.items() if tensor.grad is None} == {frozen}


@pytest.mark.parametrize("part", ["rows of one laid out for decoding", "columns", "every other row"])
def test_part_of_a_matrix_reaches_onednn_as_one_block(
    monkeypatch: pytest.MonkeyPatch, set_processor: Callable[..., None], part: str
) -> None:
    """Of other weights it computes by its reference code, a thousand times as slow."""
    set_processor()
    whole, given = torch.randn(64, 64), []
    weight = {
        "rows of one laid out for decoding": whole.t().contiguous().t()[:32],
        "columns": whole[:, :32],
        "every other row": whole[::2],
    }[part]
    x = torch.randn(2 * MIN_ROWS, weight.size(1))
    assert not weight.is_contiguous()
    assert not weight.t().is_contiguous()

    def operator(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, *_: Any) -> torch.Tensor:
        given.append(weight.is_contiguous() or weight.t().is_contiguous())
        return F.linear(x, weight, bias)

    monkeypatch.setattr(torch.ops.mkldnn, "_linear_pointwise", operator)
    exact = x.double() @ weight.double().t()
    assert close(linear(x, weight.requires_grad_()), exact, 64)
    with torch.no_grad():
        assert close(linear(x, weight), exact, 64)
    assert close(product(x, weight.detach().t()), exact, 64)
    assert given == [True] * 3


def test_every_linear_layer_of_a_model_is_replaced_and_keeps_its_parameters(chosen: None) -> None:
    shared = nn.Linear(4, 4)
    special = nn.modules.linear.NonDynamicallyQuantizableLinear(4, 4)
    model = nn.Sequential(shared, nn.ModuleList([shared, nn.Linear(4, 2, bias=False)]), special)
    before, weight = model.state_dict(keep_vars=True), shared.weight
    use_fast_products(model)
    assert model[0] is model[1][0]
    assert model[0].weight is weight
    assert [type(module) for module in (model[0], model[1][1], special)] == [Linear, Linear, type(special)]
    after = model.state_dict(keep_vars=True)
    assert list(after) == list(before)
    assert all(after[name] is before[name] for name in before)


def test_made_ready_for_decoding_a_layer_is_the_same_with_its_weight_in_another_order(chosen: None) -> None:
    torch.manual_seed(1)
    embedding, layer = nn.Embedding(30, 20), Linear(20, 30)
    layer.weight = embedding.weight  # as an output projection is tied
    before, x = embedding.weight.detach().clone(), torch.randn(5, 20)
    layer.make_generation_fast_(name="output_projection", need_attn=False)
    assert layer.weight is embedding.weight
    assert layer.weight.stride() == (1, 30)
    assert torch.equal(layer.weight, before)
    assert torch.equal(embedding(torch.tensor([3, 7])), before[[3, 7]])
    for rows in (x, x.expand(40, 5, 20)):
        assert close(layer(rows).detach(), rows.double() @ before.double().t() + layer.bias.double().detach(), 20)
