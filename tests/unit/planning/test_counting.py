"""Operations and saved bytes of small computations, by hand."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch.nn import functional

from lmfusion.planning.counting import Saved, operations, saved


def random(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, requires_grad=True)


PRODUCTS = {
    "linear": (lambda: functional.linear(torch.ones(5, 4), torch.ones(3, 4), torch.ones(3)), 5 * 4 * 3),
    "a vector": (lambda: torch.ones(5, 4) @ torch.ones(4), 5 * 4),
    "two vectors": (lambda: torch.ones(4) @ torch.ones(4), 4),
    "onto a matrix": (lambda: torch.ones(5, 3).addmm_(torch.ones(5, 4), torch.ones(4, 3)), 5 * 4 * 3),
    "onto matrices": (lambda: torch.ones(2, 5, 3).baddbmm_(torch.ones(2, 5, 4), torch.ones(2, 4, 3)), 2 * 5 * 4 * 3),
    "onto a vector": (lambda: torch.ones(5).addmv_(torch.ones(5, 4), torch.ones(4)), 5 * 4),
    "with a vector": (lambda: torch.addmv(torch.ones(5), torch.ones(5, 4), torch.ones(4)), 5 * 4),
    "none": (lambda: torch.ones(5, 4).softmax(1) * 3, 0),
}


@pytest.mark.parametrize(("run", "products"), PRODUCTS.values(), ids=PRODUCTS)
def test_a_multiply_add_is_two_operations(run: Any, products: int) -> None:
    assert operations(run) == 2 * products


@pytest.mark.skipif(not hasattr(torch.ops.mkldnn, "_linear_pointwise"), reason="PyTorch was built without oneDNN")
def test_the_product_of_onednn_is_counted() -> None:
    x, weight = torch.ones(5, 4), torch.ones(3, 4)
    assert operations(lambda: torch.ops.mkldnn._linear_pointwise(x, weight, None, "none", [], "")) == 2 * 5 * 4 * 3


def test_attention_is_two_products_over_the_whole_square_and_four_backward() -> None:
    queries, keys, values = random(2, 3, 5, 8), random(2, 3, 7, 8), random(2, 3, 7, 8)
    found = functional.scaled_dot_product_attention
    forward = 2 * 2 * 3 * 5 * 7 * (8 + 8)
    assert operations(lambda: found(queries, keys, values)) == forward
    assert operations(lambda: found(queries, keys, values).sum().backward()) == 3 * forward


def test_what_autograd_keeps_is_counted_once_by_its_kind() -> None:
    symbols, table = torch.tensor([[1, 2, 3, 1, 2]]), random(6, 4)
    inner, outer = random(4, 3), random(3, 7)

    def forward() -> torch.Tensor:
        embedded = functional.embedding(symbols, table).squeeze(0)  # kept for the product: 5 x 4
        hidden = (embedded @ inner).exp()  # kept for itself and for the next product: 5 x 3
        return (hidden @ outer).log_softmax(1)  # kept: 5 x 7

    assert saved(forward, [table, inner, outer], 7) == Saved(floats=4 * (20 + 15), others=8 * 5, logits=4 * 35)
    with_weights = saved(forward, [], 7)
    assert with_weights.floats == 4 * (20 + 15 + 12)  # the matrices are kept as well
    assert with_weights.logits == 4 * (35 + 21)


def test_what_more_is_kept_is_the_difference_in_each_kind() -> None:
    assert Saved(10, 7, 5) - Saved(3, 2, 1) == Saved(7, 5, 4)
