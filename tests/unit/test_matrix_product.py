"""Float32 products by oneDNN: the same numbers as exact ones, the same gradients, and nothing else touched."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lmfusion.kernels import matrix_product
from lmfusion.kernels.matrix_product import Linear, add_product, linear, onednn_is_faster, product, use_fast_products

SHAPES = [(2, 1, 1), (2, 256, 100), (40, 7, 33), (1517, 256, 100)]


@pytest.fixture(params=[True, False], ids=["by oneDNN", "by PyTorch's choice"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Both kinds of processors on any."""
    monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: request.param)
    return bool(request.param)


def close(found: torch.Tensor, exact: torch.Tensor, terms: int) -> bool:
    """Within the rounding of sums of so many products of normal numbers in float32."""
    return bool((found.double() - exact).abs().max() < 2e-6 * max(1.0, terms**0.5) * 5)


@pytest.mark.parametrize(("rows", "inner", "columns"), SHAPES)
def test_products_are_those_in_float64(chosen: bool, rows: int, inner: int, columns: int) -> None:
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
    chosen: bool, rows: int, inner: int, columns: int, has_bias: bool
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


@pytest.mark.parametrize("rows", [1, 5, 40])
def test_without_gradients_it_is_the_same_to_the_last_digit(chosen: bool, rows: int) -> None:
    layer, x = Linear(256, 100), torch.randn(rows, 3, 256)
    given = layer(x)
    assert given.requires_grad
    for without in (torch.no_grad, torch.inference_mode):
        with without():
            assert torch.equal(layer(x), given)


def test_a_compiled_layer_is_one_graph_of_pytorchs_own(chosen: bool) -> None:
    layer, x = Linear(8, 6), torch.randn(4, 8)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.allclose(compiled(x), layer(x), atol=1e-6)


def test_the_result_may_be_changed_in_place(chosen: bool) -> None:
    layer, x = Linear(8, 6), torch.randn(4, 8, 8)
    result = layer(x)
    result *= 3.0  # as fairseq scales queries
    result.sum().backward()
    found = layer.weight.grad
    layer.weight.grad = None
    (3.0 * F.linear(x, layer.weight, layer.bias)).sum().backward()
    assert torch.allclose(found, layer.weight.grad, rtol=1e-5)


@pytest.mark.parametrize("frozen", ["x", "weight", "bias"])
def test_what_is_frozen_gets_no_gradient(chosen: bool, frozen: str) -> None:
    tensors = {"x": torch.randn(40, 8), "weight": torch.randn(6, 8), "bias": torch.randn(6)}
    for name, tensor in tensors.items():
        tensor.requires_grad_(name != frozen)
    linear(**tensors).sum().backward()
    assert {name for name, tensor in tensors.items() if tensor.grad is None} == {frozen}


@pytest.fixture
def refuses_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor would be right, and yet it must not be used."""

    def refuse(*_: Any) -> None:
        raise AssertionError("oneDNN was used")

    monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(matrix_product, "_onednn", refuse)


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float32, 0), (torch.float64, 40), (torch.bfloat16, 40)], ids=str)
def test_other_types_and_empty_tensors_are_pytorchs(refuses_onednn: None, dtype: torch.dtype, rows: int) -> None:
    x, weight, bias = (torch.randn(size, dtype=dtype) for size in ((rows, 8), (6, 8), (6,)))
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    assert torch.equal(product(x, weight.t()), x @ weight.t())


def test_autocast_still_takes_products_in_its_type(refuses_onednn: None) -> None:
    layer, x = Linear(8, 6), torch.randn(40, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


def test_it_is_used_where_the_processor_is_right(refuses_onednn: None) -> None:
    with pytest.raises(AssertionError, match="oneDNN was used"):
        linear(torch.randn(4, 8, 8), torch.randn(6, 8))


def test_every_linear_layer_of_a_model_is_replaced_and_keeps_its_parameters(chosen: bool) -> None:
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


@pytest.mark.parametrize(
    ("name", "avx512", "mkl", "expected"),
    [
        ("AMD EPYC 9654", True, True, True),
        ("AMD EPYC 7763", False, True, False),
        ("Intel(R) Xeon(R) Platinum 8481C", True, True, False),
        ("AMD EPYC 9654", True, False, False),
    ],
)
def test_which_processors_are_right(
    monkeypatch: pytest.MonkeyPatch, name: str, avx512: bool, mkl: bool, expected: bool
) -> None:
    facts = {"cpu_name": name, "avx512_f": avx512}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts, raising=False)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: mkl)
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    assert onednn_is_faster.__wrapped__() is expected
