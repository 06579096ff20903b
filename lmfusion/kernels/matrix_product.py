"""Matrix products in float32 by the faster of PyTorch's two libraries.

On a CPU PyTorch takes float32 products by Intel's MKL, which leaves the AVX-512 units of AMD's processors idle; oneDNN,
which PyTorch carries for other types, uses them. What that gains depends on the processor and on the size:

- Zen 5, whose units are 512 bits wide: 1.8 to 4 times as fast (benchmarks/RESULTS.md).
- Zen 4, whose units take 512 bits in two halves: layers of 128 rows or more and the gradients of their inputs are 1.05
  to 1.4 times as fast. Gradients of weights are not, and fewer rows, as in steps of decoding, lose.
- Everywhere else, and in every other type, PyTorch's choice stands.

Both libraries add in float32. The choice goes by facts, never by a measurement: the same run gives the same numbers.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_logger = logging.getLogger(__name__)

MIN_ROWS = 128
"""Rows of a layer's input (tokens of a batch) below which MKL is as fast or faster."""


@cache
def onednn_is_faster() -> bool:
    """Return whether this is a processor on which oneDNN beats PyTorch's choice in float32; say so once in the log."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    facts = _processor()
    # The operator is private to PyTorch: a version may do without it.
    faster = "AMD" in facts.get("cpu_name", "") and bool(facts.get("avx512_f")) and _has_operator()
    if faster:
        which = "layers, gradients of inputs and of weights" if units_are_wide() else "layers, gradients of inputs"
        _logger.info(f"float32 products of {MIN_ROWS} rows or more by oneDNN on this AMD processor: {which}")
    return faster


@cache
def units_are_wide() -> bool:
    """Return whether AVX-512 units of an AMD processor are 512 bits wide: Zen 5, by instructions that came with it."""
    return bool(_processor().get("avx_vnni") or _processor().get("avx512_vp2intersect"))


def _processor() -> dict[str, Any]:
    return dict(torch.cpu.get_capabilities())


def _has_operator() -> bool:
    return hasattr(torch.ops.mkldnn, "_linear_pointwise")


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """Return ``left @ right``, M x K times K x N, without autograd.

    Args:
        left: M x K; transposed in memory, as in gradients of weights, its K are the rows that count.
        right: K x N.
        out: memory that the result may take, M x N.
    """
    is_transposed = left.stride(0) == 1 and left.size(0) > 1
    if (is_transposed and not units_are_wide()) or not _by_onednn(left, right, left.size(int(is_transposed))):
        return torch.mm(left, right, out=out)
    if is_transposed and left.size(0) > right.size(1):
        # Of two ways to multiply by a transposed matrix, as gradients of weights are made, oneDNN is faster in this.
        return _onednn(right.t(), left, None).t().contiguous()
    return _onednn(left, right.t(), None)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """Add ``left @ right``, a gradient of weights, to ``total`` (M x N) in place, without autograd.

    Args:
        total: M x N.
        left: M x K, transposed in memory: its K are the rows that count.
        right: K x N.
    """
    if units_are_wide() and _by_onednn(left, right, left.size(1)):
        total.add_(product(left, right))
    else:
        total.addmm_(left, right)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return :func:`torch.nn.functional.linear`: ... x K, N x K and N -> ... x N."""
    rows = x.numel() // max(1, weight.size(1))
    if not _by_onednn(x, weight, rows) or torch.is_autocast_enabled("cpu"):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():  # decoding, frozen models: without what autograd would cost
        return F.linear(x, weight, bias) if _is_decoding_step(x) else _onednn(x, weight, bias)
    # fairseq changes the result in place, which autograd allows in a view of what a function gave, not in one given.
    result: Tensor = _Linear.apply(x.flatten(0, -2), weight, bias)
    return result.view(*x.shape[:-1], weight.size(0))


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` by :func:`linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """Map ... x K -> ... x N."""
        # A step of decoding makes a hundred small products, and another call each would be felt.
        if input.numel() < MIN_ROWS * self.in_features:
            return F.linear(input, self.weight, self.bias)
        return linear(input, self.weight, self.bias)

    def make_generation_fast_(self, **_: Any) -> None:
        """Lay the weight out in memory as K x N, its shape and values unchanged: fairseq calls it before decoding.

        A step of decoding has few rows and reads all weights of the model, which MKL does faster in this order
        (benchmarks/RESULTS.md, the baseline beside fairseq's transformer).
        """
        if self.weight.device.type == "cpu":
            self.weight.data = self.weight.data.t().contiguous().t()


def use_fast_products(model: nn.Module) -> None:
    """Make every linear layer of a fairseq model a :class:`Linear`, which has the same parameters and no others."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear


def _by_onednn(x: Tensor, other: Tensor, rows: int) -> bool:
    return (
        not torch.compiler.is_compiling()  # it cannot be traced
        and rows >= MIN_ROWS
        and x.device.type == "cpu"
        and x.dtype == other.dtype == torch.float32
        and x.numel() > 0
        and onednn_is_faster()
    )


def _is_decoding_step(x: Tensor) -> bool:
    """Return whether these are states of one position of every row (1 x B x C or B x 1 x C), however many rows."""
    return x.dim() == 3 and 1 in x.shape[:2]


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    if not (weight.is_contiguous() or weight.t().is_contiguous()):
        # Of a part of a matrix, such as the keys' rows of weights laid out for decoding, oneDNN computes a product by
        # its reference code, a thousand times as slow; a copy is small beside MIN_ROWS rows of products.
        weight = weight.contiguous()
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Linear(torch.autograd.Function):
    """Multiply M x K by N x K, and in the pass backward make two more products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        return _onednn(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, weight = ctx.saved_tensors
        (grad,) = grads
        of_x, of_weight, of_bias = ctx.needs_input_grad
        return (
            product(grad, weight) if of_x else None,
            product(grad.t(), x) if of_weight else None,
            grad.sum(0) if of_bias else None,
        )
