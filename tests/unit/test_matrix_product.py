"""Float32 products by oneDNN: the same numbers as exact ones, the same gradients, and nothing else touched."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from lmfusion.kernels import matrix_product
from lmfusion.kernels.matrix_product import (
    MIN_ROWS,
    Linear,
    add_product,
    linear,
    onednn_is_faster,
    product,
    units_are_wide,
    use_fast_products,
)

SHAPES = [(2, 1, 1), (2, 256, 100), (40, 7, 33), (1517, 256, 100)]
INTEL, ZEN_4, ZEN_5 = (False, False), (True, False), (True, True)
"""Whether oneDNN is faster, and for gradients of weights too."""


def set_processor(monkeypatch: pytest.MonkeyPatch, faster: bool, wide: bool) -> None:
    """This kind of processor on any."""
    monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: faster)
    monkeypatch.setattr(matrix_product, "units_are_wide", lambda: wide)


@pytest.fixture(params=[ZEN_5, ZEN_4, INTEL], ids=["Zen 5", "Zen 4", "others"])
def chosen(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """All kinds of processors on any, and no product too small."""
    set_processor(monkeypatch, *request.param)
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


@pytest.fixture
def refuses_onednn(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor would be right, and yet it must not be used."""

    def refuse(*_: Any) -> None:
        raise AssertionError("oneDNN was used")

    set_processor(monkeypatch, *ZEN_5)
    monkeypatch.setattr(matrix_product, "_onednn", refuse)


@pytest.mark.parametrize(("dtype", "rows"), [(torch.float32, 0), (torch.float64, 400), (torch.bfloat16, 400)], ids=str)
def test_other_types_and_empty_tensors_are_pytorchs(refuses_onednn: None, dtype: torch.dtype, rows: int) -> None:
    x, weight, bias = (torch.randn(size, dtype=dtype) for size in ((rows, 8), (6, 8), (6,)))
    assert torch.equal(linear(x, weight, bias), F.linear(x, weight, bias))
    assert torch.equal(product(x, weight.t()), x @ weight.t())


def test_autocast_still_takes_products_in_its_type(refuses_onednn: None) -> None:
    layer, x = Linear(8, 6), torch.randn(400, 8)
    with torch.autocast("cpu", torch.bfloat16):
        assert layer(x).dtype == torch.bfloat16


@pytest.mark.parametrize("part", ["rows of one laid out for decoding", "columns", "every other row"])
def test_part_of_a_matrix_reaches_onednn_as_one_block(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    """Of other weights it computes by its reference code, a thousand times as slow."""
    set_processor(monkeypatch, *ZEN_5)
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


@pytest.mark.parametrize("grad", [True, False], ids=["trained", "frozen"])
def test_it_is_used_for_so_many_rows_and_not_for_fewer(refuses_onednn: None, grad: bool) -> None:
    weight = torch.randn(6, 8, requires_grad=True)
    few, many = torch.randn(3, MIN_ROWS // 3, 8), torch.randn(2, MIN_ROWS // 2, 8)
    with torch.set_grad_enabled(grad):
        assert torch.equal(linear(few, weight), F.linear(few, weight))
        with pytest.raises(AssertionError, match="oneDNN was used"):
            linear(many, weight)


@pytest.mark.parametrize("shape", [(1, 5 * MIN_ROWS, 8), (5 * MIN_ROWS, 1, 8)], ids=["fairseq's", "ours"])
def test_a_step_of_decoding_is_pytorchs_however_many_hypotheses_there_are(
    refuses_onednn: None, shape: tuple[int, int, int]
) -> None:
    x, weight = torch.randn(shape), torch.randn(6, 8, requires_grad=True)
    with torch.no_grad():
        assert torch.equal(linear(x, weight), F.linear(x, weight))


@pytest.mark.parametrize(("wide", "expected"), [(True, 3), (False, 2)])
def test_gradients_of_weights_take_it_where_units_are_wide(
    monkeypatch: pytest.MonkeyPatch, wide: bool, expected: int
) -> None:
    made: list[Any] = []
    original = matrix_product._onednn
    set_processor(monkeypatch, True, wide)
    monkeypatch.setattr(matrix_product, "_onednn", lambda *given: made.append(given) or original(*given))
    x, weight = torch.randn(400, 8, requires_grad=True), torch.randn(6, 8, requires_grad=True)
    linear(x, weight).backward(torch.randn(400, 6))
    assert len(made) == expected
    add_product(torch.zeros(6, 8), torch.randn(400, 6).t(), x.detach())
    assert len(made) == expected + int(wide)


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


@pytest.mark.parametrize(
    ("name", "extensions", "missing", "expected"),
    [
        ("AMD EPYC 9755", {"avx512_f", "avx_vnni", "avx512_vp2intersect"}, "", ZEN_5),
        ("AMD EPYC", {"avx512_f", "avx_vnni"}, "", ZEN_5),  # a virtual machine may hide some of it
        ("AMD EPYC 9654", {"avx512_f"}, "", ZEN_4),
        ("AMD EPYC 7763", set(), "", INTEL),
        ("Intel(R) Xeon(R) Platinum 8481C", {"avx512_f", "avx_vnni"}, "", (False, True)),
        ("AMD EPYC 9654", {"avx512_f"}, "MKL", INTEL),
        ("AMD EPYC 9654", {"avx512_f"}, "operator", INTEL),
    ],
)
def test_which_processors_are_right(
    monkeypatch: pytest.MonkeyPatch, name: str, extensions: set[str], missing: str, expected: tuple[bool, bool]
) -> None:
    facts = {"cpu_name": name, **dict.fromkeys(extensions, True)}
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: facts)
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: missing != "MKL")
    monkeypatch.setattr(torch.backends.mkldnn, "is_available", lambda: True)
    if missing == "operator":  # PyTorch without its private operator
        monkeypatch.setattr(torch.ops, "mkldnn", SimpleNamespace())
    assert (onednn_is_faster.__wrapped__(), units_are_wide.__wrapped__()) == expected


def test_the_choice_is_said_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"cpu_name": "AMD EPYC", "avx512_f": True})
    monkeypatch.setattr(torch.backends.mkl, "is_available", lambda: True)
    onednn_is_faster.cache_clear()
    try:
        with caplog.at_level("INFO", logger="lmfusion.kernels.matrix_product"):
            for _ in range(3):
                linear(torch.randn(400, 8), torch.randn(6, 8))
        assert [record.message.count("oneDNN") for record in caplog.records] == [1]
    finally:
        onednn_is_faster.cache_clear()


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
