"""Attention for training on a CPU.

PyTorch's fused kernel for CPUs knows no dropout, and in bfloat16 its pass backward is slow. Where it does
not serve, PyTorch falls back to operations of which autograd keeps and copies far more than the pass backward needs.
Here the two matrix products of softmax(Q Kᵀ) V and the four of its gradients are made directly: 1.3 times as fast in
float32 with dropout, 3 times in bfloat16 (benchmarks/RESULTS.md). The weights are in memory, B x H x T x S.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from lmfusion import plain_operations
from lmfusion.kernels.dropout import random_mask


def is_faster(query: Tensor, dropout: float) -> bool:
    """Return whether :func:`masked_attention` is to be preferred to PyTorch's.

    Args:
        query: B x H x T x D.
        dropout: probability of dropping an attention weight.
    """
    if torch.compiler.is_compiling():  # random numbers written into memory break the graph; PyTorch's do not
        return False
    slow_backward = query.dtype == torch.bfloat16 and torch.is_grad_enabled()
    return query.device.type == "cpu" and (0.0 < dropout < 1.0 or slow_backward)


def attention(
    query: Tensor, key: Tensor, value: Tensor, visible: Tensor, *, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """Return what :func:`lmfusion.plain_operations.attention` does, of the same arguments, by what is faster."""
    if not is_faster(query, dropout):
        return plain_operations.attention(query, key, value, visible, dropout=dropout, scale=scale)
    mask = torch.zeros(visible.shape, dtype=query.dtype).masked_fill_(~visible, float("-inf"))
    return masked_attention(query, key, value, mask, dropout=dropout, scale=scale)


def masked_attention(
    query: Tensor, key: Tensor, value: Tensor, mask: Tensor, *, dropout: float = 0.0, scale: float | None = None
) -> Tensor:
    """Return ``dropout(softmax(scale * Q Kᵀ + mask)) V``, B x H x T x D, by the two products alone.

    Args:
        query, key, value, dropout, scale: as of :func:`attention`.
        mask: in the type of the query, of any shape that expands to B x H x T x S.
    """
    scale = query.size(-1) ** -0.5 if scale is None else scale
    result: Tensor = _Attention.apply(query, key, value, mask, dropout, scale)
    return result


def causal_attention(query: Tensor, key: Tensor, value: Tensor, *, dropout: float = 0.0) -> Tensor:
    """Return :func:`attention` where position i sees positions <= i; all three, and the result, B x H x T x D."""
    if not is_faster(query, dropout):
        return plain_operations.causal_attention(query, key, value, dropout=dropout)
    time = query.size(2)
    mask = torch.full((time, time), float("-inf"), dtype=query.dtype).triu_(1)
    return masked_attention(query, key, value, mask, dropout=dropout)


class _Attention(torch.autograd.Function):
    """Attend with heads as rows of the batch: N x T x D with N = B * H."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float, scale: float
    ) -> Tensor:
        heads = query.shape[:2]
        query, key, value = (_rows(tensor) for tensor in (query, key, value))
        scores = query.new_empty(*heads, query.size(1), key.size(1)).copy_(mask).flatten(0, 1)
        scores.baddbmm_(query, key.transpose(1, 2), alpha=scale)
        weights = torch.softmax(scores, -1, out=scores)
        dropped = weights
        if dropout > 0.0:
            keep, upscale = random_mask(weights, dropout)
            dropped = keep.mul_(weights).mul_(upscale)
        attended = torch.bmm(dropped, value)
        ctx.save_for_backward(query, key, value, weights, dropped, attended)
        ctx.heads, ctx.scale = heads, scale
        return attended.unflatten(0, heads)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, weights, dropped, attended = ctx.saved_tensors
        grad = _rows(grads[0])
        # For scores S, weights W and dropped weights D: dS = dD * D - W * sum(dD * D), and that sum over keys is the
        # sum of grad * attended over channels. The mask of dropout is not needed.
        inner = (grad * attended).sum(-1, keepdim=True)
        of_value = torch.bmm(dropped.transpose(1, 2), grad)
        of_scores = torch.bmm(grad, value.transpose(1, 2)).mul_(dropped).addcmul_(weights, inner, value=-1)
        of_scores.mul_(ctx.scale)
        of_query = torch.bmm(of_scores, key)
        of_key = torch.bmm(of_scores.transpose(1, 2), query)
        of_inputs = (tensor.unflatten(0, ctx.heads) for tensor in (of_query, of_key, of_value))
        return (*of_inputs, None, None, None)


def _rows(tensor: Tensor) -> Tensor:
    """Lay out B x H x T x D as BH x T x D, contiguous: products of batches copy anything else."""
    return tensor.contiguous().flatten(0, 1)
