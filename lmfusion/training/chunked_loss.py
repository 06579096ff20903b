"""Compute the cross-entropy over a vocabulary without holding all logits at once.

N tokens over a vocabulary of size V have N x V logits, and fairseq's criterions make several tensors of that shape.
Here the logits of a few tokens at a time are computed, and with them at once their part in the gradients of features
and output embeddings, so that nothing of that shape has to be kept for the backward pass.

In fp16 gradients need the loss scale before they are rounded, and only the backward pass knows it: there they are
computed late, from logits computed a second time. In bf16 and fp32 the backward pass only multiplies.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.autograd.function import once_differentiable

from lmfusion.operations import add_product, product

CHUNK_BYTES = 24 * 2**20
"""Size of the logits of one chunk, in float32. glibc would request blocks of 32 MiB from the system every time."""


class ChunkedLoss(NamedTuple):
    """Sums of the loss over all tokens that are not padding: scalars, of which only ``loss`` has a gradient."""

    loss: Tensor
    nll: Tensor
    """The loss without label smoothing."""
    correct: Tensor
    """Number of targets that have the largest logit; 0 unless asked for."""


@dataclass(frozen=True)
class _Plan:
    dtype: torch.dtype
    """Type of the matrix products; everything else is at least float32."""
    chunk_tokens: int
    label_smoothing: float
    count_correct: bool

    @property
    def precise(self) -> torch.dtype:
        return torch.promote_types(self.dtype, torch.float32)


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
        chunk_tokens: number of tokens whose logits exist at once; 0 chooses as many as :data:`CHUNK_BYTES` hold.
        count_correct: also count the targets that have the largest logit.

    Returns:
        The sums; ``loss`` can be differentiated once, with respect to features and weight.

    Raises:
        ValueError: if the shapes do not fit.
    """
    if features.shape[:-1] != target.shape or features.size(-1) != weight.size(1):
        shapes = [tuple(tensor.shape) for tensor in (features, weight, target)]
        raise ValueError(f"features, weight and target do not fit together: {shapes}")
    real = target.ne(padding_idx)
    plan = _Plan(
        dtype=F.linear(features[:0], weight[:0]).dtype,
        chunk_tokens=chunk_tokens or max(1, CHUNK_BYTES // (4 * weight.size(0))),
        label_smoothing=label_smoothing,
        count_correct=count_correct,
    )
    return ChunkedLoss(*_Loss.apply(features[real], weight, target[real], plan, torch.is_grad_enabled()))


class _Loss(torch.autograd.Function):
    """The loss as a function of features (N x C), output embeddings (V x C) and targets (N), without padding."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, weight: Tensor, target: Tensor, plan: _Plan, grad_enabled: bool
    ) -> tuple[Tensor, ...]:
        ctx.plan = plan
        ctx.wanted = tuple(wanted and grad_enabled for wanted in ctx.needs_input_grad[:2])
        ctx.late = plan.dtype == torch.float16
        chunked = _ChunkedForward(features, weight, target, plan, (False, False) if ctx.late else ctx.wanted)
        sums = chunked.run()
        ctx.save_for_backward(*((features, weight, target) if ctx.late else chunked.gradients()))
        ctx.mark_non_differentiable(*sums[1:])
        return sums

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_loss: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        if ctx.late:
            features, weight, target = ctx.saved_tensors
            chunked = _ChunkedForward(features, weight, target, ctx.plan, ctx.wanted, grad_loss)
            chunked.run()
            return (*chunked.gradients(), None, None, None)
        # In place: a copy of the weight's gradient would be the largest tensor of the step. PyTorch refuses a second
        # backward pass through what has been changed.
        scaled = [None if gradient is None else gradient.mul_(grad_loss) for gradient in ctx.saved_tensors]
        return (*scaled, None, None, None)


class _ChunkedForward:
    """A forward pass over all chunks that computes the gradients on the way.

    Args:
        features, weight, target: N x C, V x C, N.
        plan: its settings.
        wanted: True for features, and for the weight, if their gradient is to be computed.
        scale: factor on the gradients; None is 1.
    """

    def __init__(
        self,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        plan: _Plan,
        wanted: tuple[bool, bool],
        scale: Tensor | None = None,
    ) -> None:
        self.plan, self.target, self.scale = plan, target, scale
        self.features, self.weight = features.to(plan.dtype), weight.to(plan.dtype)
        self.types = (features.dtype, weight.dtype)
        self.d_features = torch.empty_like(self.features) if wanted[0] else None
        # Float32 also where the weight is half: so many small terms would be lost one by one.
        self.d_weight = torch.zeros_like(weight, dtype=plan.precise) if wanted[1] else None
        self.products = torch.empty_like(self.weight) if wanted[1] and plan.dtype != plan.precise else None

    def run(self) -> tuple[Tensor, Tensor, Tensor]:
        """Compute the loss, the loss without smoothing and the number of correct predictions."""
        loss, nll = (self.target.new_zeros((), dtype=self.plan.precise) for _ in range(2))
        correct = self.target.new_zeros(())
        with torch.no_grad(), torch.autocast(self.features.device.type, enabled=False):
            for rows, memory, precise in self._chunks():
                products = product(self.features[rows], self.weight.t(), out=memory)
                logits = products if precise is None else precise.copy_(products)
                target = self.target[rows].unsqueeze(1)
                if self.plan.count_correct:
                    correct = correct + logits.argmax(-1, keepdim=True).eq(target).sum()
                chunk_loss, chunk_nll = self._turn_into_gradient(logits, target)
                loss, nll = loss + chunk_loss, nll + chunk_nll
                if precise is not None:
                    products.copy_(logits)
                self._backpropagate(rows, products)
        return loss, nll, correct

    def gradients(self) -> tuple[Tensor | None, Tensor | None]:
        """Return the gradients of features and weight in their types; None where not wanted."""
        made = zip((self.d_features, self.d_weight), self.types)
        features, weight = (None if gradient is None else gradient.to(dtype) for gradient, dtype in made)
        return features, weight

    def _chunks(self) -> Iterator[tuple[slice, Tensor, Tensor | None]]:
        """Yield each chunk: its tokens, memory for its n x V products, and the same in float32 if that is another type.

        It is the same memory for every chunk: fresh pages are what all logits at once cost most on a CPU.
        """
        tokens, size = self.target.numel(), self.plan.chunk_tokens
        products = self.features.new_empty(min(size, tokens), self.weight.size(0))
        precise = None if self.plan.dtype == self.plan.precise else products.to(self.plan.precise)
        for start in range(0, tokens, size):
            count = min(size, tokens - start)
            yield slice(start, start + count), products[:count], None if precise is None else precise[:count]

    def _turn_into_gradient(self, logits: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return a chunk's losses, and overwrite its logits (n x V) with the gradient of the loss by them."""
        vocabulary_size, epsilon = logits.size(1), self.plan.label_smoothing
        # As in fairseq, the target keeps 1 - epsilon, and all others share epsilon.
        others = epsilon / (vocabulary_size - 1)
        logits.sub_(logits.amax(-1, keepdim=True))
        of_target = logits.gather(1, target)
        of_all = logits.sum(-1, keepdim=True) if epsilon else torch.zeros_like(of_target)
        total = logits.exp_().sum(-1, keepdim=True)
        nll = (total.log() - of_target).sum()
        loss = (1 - epsilon - others) * nll + others * (vocabulary_size * total.log() - of_all).sum()
        if self.d_features is not None or self.d_weight is not None:
            logits.div_(total)
            if epsilon:
                logits.sub_(others)
            logits.scatter_add_(1, target, torch.full_like(of_target, epsilon + others - 1))
            if self.scale is not None:
                logits.mul_(self.scale)
        return loss, nll

    def _backpropagate(self, rows: slice, gradient: Tensor) -> None:
        """Add a chunk's gradient by the logits (n x V) to those of features and weight."""
        if self.d_features is not None:
            self.d_features[rows] = product(gradient, self.weight)
        if self.d_weight is None:
            return
        if self.plan.dtype == self.plan.precise:
            add_product(self.d_weight, gradient.t(), self.features[rows])
        else:
            self.d_weight += torch.mm(gradient.t(), self.features[rows], out=self.products)
