"""Compute the cross-entropy over a vocabulary without holding all logits at once.

N tokens over a vocabulary of size V have N x V logits, and fairseq's criterions make several tensors of that shape.
Here the logits of a few tokens at a time are computed, and with them at once their part in the gradients of features
and output embeddings, so that nothing of that shape has to be kept for the backward pass.

In fp16 gradients need the loss scale before they are rounded, and only the backward pass knows it: there they are
computed late, from logits computed a second time. In bf16 and fp32 the backward pass only multiplies.

PyTorch 2.13 has a function for this, ``linear_cross_entropy(options=…)``, which does not replace it: with label
smoothing it makes all logits, it returns one loss where fairseq logs two, rounds gradients in fp16 before the loss
scale, sums the loss in bf16, and knows no autocast. ``lmfusion bench chunked_loss --smoothing 0`` measures both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from lmfusion.lm.transformer.layout import reads_freely
from lmfusion.training.loss_chunks import ChunkedForward, Plan

CPU_CHUNK_BYTES = 24 * 2**20
"""Size of the logits of one chunk, in float32. glibc would request blocks of 32 MiB from the system every time."""
GPU_CHUNK_BYTES = 512 * 2**20
"""The same on a GPU, whose allocator keeps what it has, and which a small chunk keeps waiting: 37,000 types make 24 MiB
of 170 tokens, and for each such chunk the whole gradient of the weight is read and written once more."""


class ChunkedLoss(NamedTuple):
    """Sums of the loss over all tokens that are not padding: scalars, of which only ``loss`` has a gradient."""

    loss: Tensor
    nll: Tensor
    """The loss without label smoothing."""
    correct: Tensor
    """Number of targets that have the largest logit; 0 unless asked for."""


def chunked_cross_entropy(
    features: Tensor,
    weight: Tensor,
    target: Tensor,
    *,
    padding_idx: int,
    label_smoothing: float = 0.0,
    chunk_tokens: int = 0,
    count_correct: bool = False,
) -> ChunkedLoss:
    """Compute the summed (label-smoothed) cross-entropy of ``features @ weight.T`` as fairseq does.

    Matrix products are computed in the type that autocast gives them, or else in that of the features.

    Args:
        features: ... x C.
        weight: output embeddings, V x C.
        target: indices, shaped as the features without C.
        padding_idx: target of positions that do not count.
        label_smoothing: share of the probability that is spread over the whole vocabulary, as in fairseq.
        chunk_tokens: number of tokens whose logits exist at once; 0 chooses as many as :data:`CPU_CHUNK_BYTES`
            or :data:`GPU_CHUNK_BYTES` hold.
        count_correct: also count the targets that have the largest logit.

    Returns:
        The sums; ``loss`` can be differentiated once, with respect to features and weight.

    Raises:
        ValueError: if the shapes do not fit.
    """
    if features.shape[:-1] != target.shape or features.size(-1) != weight.size(1):
        shapes = [tuple(tensor.shape) for tensor in (features, weight, target)]
        raise ValueError(f"features, weight and target do not fit together: {shapes}")
    chunk_bytes = CPU_CHUNK_BYTES if features.device.type == "cpu" else GPU_CHUNK_BYTES
    plan = Plan(
        dtype=F.linear(features[:0], weight[:0]).dtype,
        chunk_tokens=chunk_tokens or max(1, chunk_bytes // (4 * weight.size(0))),
        label_smoothing=label_smoothing,
        count_correct=count_correct,
    )
    features, target, padding = _without_padding(features, target, padding_idx)
    return ChunkedLoss(*_Loss.apply(features, weight, target, padding, plan, torch.is_grad_enabled()))


def _without_padding(features: Tensor, target: Tensor, padding_idx: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return features (N x C), targets (N) and where they do not count (N x 1); None if what does not is left out.

    It is left out where the number of tokens can be read freely. Elsewhere it counts nothing: its target is some type,
    and its features are zero, lest a value that is no number spoil the gradient of the weight.
    """
    padding = target.eq(padding_idx)
    if reads_freely(target):
        return features[~padding], target[~padding], None
    features, target = features.masked_fill(padding.unsqueeze(-1), 0.0), target.masked_fill(padding, 0)
    return features.flatten(0, -2), target.flatten(), padding.view(-1, 1)


class _Loss(torch.autograd.Function):
    """The loss as a function of features (N x C), output embeddings (V x C), targets (N) and padding (N x 1)."""

    @staticmethod
    def forward(
        ctx: Any,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        padding: Tensor | None,
        plan: Plan,
        grad_enabled: bool,
    ) -> tuple[Tensor, ...]:
        ctx.plan = plan
        ctx.wanted = tuple(wanted and grad_enabled for wanted in ctx.needs_input_grad[:2])
        ctx.late = plan.dtype == torch.float16
        given = features, weight, target, padding
        chunked = ChunkedForward(*given, plan, (False, False) if ctx.late else ctx.wanted)
        sums = chunked.run()
        ctx.save_for_backward(*(given if ctx.late else chunked.gradients()))
        ctx.mark_non_differentiable(*sums[1:])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        if ctx.late:
            features, weight, target, padding = ctx.saved_tensors
            chunked = ChunkedForward(features, weight, target, padding, ctx.plan, ctx.wanted, grad_loss)
            chunked.run()
            return (*chunked.gradients(), None, None, None, None)
        # In place: a copy of the weight's gradient would be the largest tensor of the step. PyTorch refuses a second
        # backward pass through what has been changed.
        scaled = [None if gradient is None else gradient.mul_(grad_loss) for gradient in ctx.saved_tensors]
        return (*scaled, None, None, None, None)
