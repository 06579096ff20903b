"""Matrix products in float32 by the faster of PyTorch's two libraries.

On a CPU PyTorch takes float32 products by Intel's MKL, which leaves the AVX-512 units of AMD's processors idle; oneDNN,
which PyTorch carries for other types, uses them: 1.8 to 4 times as fast there (benchmarks/RESULTS.md). Both add in
float32. Everywhere else, and in every other type, PyTorch's choice stands.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable


@cache
def onednn_is_faster() -> bool:
    """Whether this is a processor on which oneDNN beats PyTorch's choice in float32."""
    if not (torch.backends.mkl.is_available() and torch.backends.mkldnn.is_available()):
        return False
    facts: dict[str, Any] = getattr(torch.cpu, "get_capabilities", dict)()  # PyTorch 2.1 does not say
    return "AMD" in facts.get("cpu_name", "") and bool(facts.get("avx512_f"))


def product(left: Tensor, right: Tensor, out: Tensor | None = None) -> Tensor:
    """``left @ right``, M x K times K x N, without autograd; ``out`` is memory that the result may take."""
    if not _by_onednn(left, right):
        return torch.mm(left, right, out=out)
    if left.stride(0) == 1 and left.size(0) > right.size(1):
        # Of two ways to multiply by a transposed matrix, as gradients of weights are made, oneDNN is faster in this.
        return _onednn(right.t(), left, None).t().contiguous()
    return _onednn(left, right.t(), None)


def add_product(total: Tensor, left: Tensor, right: Tensor) -> None:
    """``total += left @ right`` in place, without autograd."""
    if _by_onednn(left, right):
        total.add_(product(left, right))
    else:
        total.addmm_(left, right)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """:func:`torch.nn.functional.linear`: ... x K, N x K and N -> ... x N."""
    if torch.is_autocast_enabled("cpu") or not _by_onednn(x, weight):
        return F.linear(x, weight, bias)
    if not torch.is_grad_enabled():  # steps of decoding, frozen models: without what autograd would cost
        return _onednn(x, weight, bias)
    # fairseq changes the result in place, which autograd allows in a view of what a function gave, not in one given.
    result: Tensor = _Linear.apply(x.flatten(0, -2), weight, bias)
    return result.view(*x.shape[:-1], weight.size(0))


class Linear(nn.Linear):
    """:class:`torch.nn.Linear` by :func:`linear`."""

    def forward(self, input: Tensor) -> Tensor:
        """... x K -> ... x N."""
        return linear(input, self.weight, self.bias)


def use_fast_products(model: nn.Module) -> None:
    """Let every linear layer of a fairseq model be a :class:`Linear`, which has the same parameters and no others."""
    for module in model.modules():
        if type(module) is nn.Linear:
            module.__class__ = Linear


def _by_onednn(x: Tensor, other: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype == other.dtype == torch.float32
        and x.numel() > 0
        and onednn_is_faster()
        and not torch.compiler.is_compiling()  # it cannot be traced
    )


def _onednn(x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    result: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return result


class _Linear(torch.autograd.Function):
    """Three products by oneDNN, of M x K and N x K."""

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
