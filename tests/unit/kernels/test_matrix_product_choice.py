"""Which processors take float32 products by oneDNN, for which tensors, and that it is said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F

from lmfusion.kernels import matrix_product
from lmfusion.kernels.matrix_product import (
    MIN_ROWS,
    Linear,
    add_product,
    linear,
    onednn_is_faster,
    product,
    units_are_wide,
)

INTEL, ZEN_4, ZEN_5 = (False, False), (True, False), (True, True)
"""Whether oneDNN is faster, and for gradients of weights too."""


@pytest.fixture
def refuses_onednn(monkeypatch: pytest.MonkeyPatch, set_processor: Callable[..., None]) -> None:
    """The processor would be right, and yet it must not be used."""

    def refuse(*_: Any) -> None:
        raise AssertionError("oneDNN was used")

    set_processor()
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
    monkeypatch: pytest.MonkeyPatch, set_processor: Callable[..., None], wide: bool, expected: int
) -> None:
    made: list[Any] = []
    original = matrix_product._onednn
    set_processor(wide=wide)
    monkeypatch.setattr(matrix_product, "_onednn", lambda *given: made.append(given) or original(*given))
    x, weight = torch.randn(400, 8, requires_grad=True), torch.randn(6, 8, requires_grad=True)
    linear(x, weight).backward(torch.randn(400, 6))
    assert len(made) == expected
    add_product(torch.zeros(6, 8), torch.randn(400, 6).t(), x.detach())
    assert len(made) == expected + int(wide)


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
