"""Pass over the tokens of a batch a chunk at a time: their logits, their loss and its gradients."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from lmfusion.operations import add_product, product


@dataclass(frozen=True)
class Plan:
    """Describe how a loss is computed in chunks."""

    dtype: torch.dtype
    """Type of the matrix products; everything else is at least float32."""
    chunk_tokens: int
    label_smoothing: float
    count_correct: bool

    @property
    def precise(self) -> torch.dtype:
        """Return the type of everything but matrix products."""
        return torch.promote_types(self.dtype, torch.float32)


class ChunkedForward:
    """A forward pass over all chunks that computes the gradients on the way.

    Args:
        features, weight, target: N x C, V x C, N.
        padding: N x 1, True where a token does not count; None: all do.
        plan: its settings.
        wanted: True for features, and for the weight, if their gradient is to be computed.
        scale: factor on the gradients; None is 1.
    """

    def __init__(
        self,
        features: Tensor,
        weight: Tensor,
        target: Tensor,
        padding: Tensor | None,
        plan: Plan,
        wanted: tuple[bool, bool],
        scale: Tensor | None = None,
    ) -> None:
        self.plan, self.target, self.padding, self.scale = plan, target, padding, scale
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
                padding = None if self.padding is None else self.padding[rows]
                if self.plan.count_correct:
                    correct = correct + _masked(logits.argmax(-1, keepdim=True).eq(target), padding).sum()
                chunk_loss, chunk_nll = self._turn_into_gradient(logits, target, padding)
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

    def _turn_into_gradient(self, logits: Tensor, target: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return a chunk's losses, and overwrite its logits (n x V) with the gradient of the loss by them."""
        vocabulary_size, epsilon = logits.size(1), self.plan.label_smoothing
        # As in fairseq, the target keeps 1 - epsilon, and all others share epsilon.
        others = epsilon / (vocabulary_size - 1)
        logits.sub_(logits.amax(-1, keepdim=True))
        of_target = logits.gather(1, target)
        of_all = logits.sum(-1, keepdim=True) if epsilon else torch.zeros_like(of_target)
        total = logits.exp_().sum(-1, keepdim=True)
        nll = _masked(total.log() - of_target, padding).sum()
        smooth = _masked(vocabulary_size * total.log() - of_all, padding).sum()
        loss = (1 - epsilon - others) * nll + others * smooth
        if self.d_features is not None or self.d_weight is not None:
            # What is subtracted is masked, not the n x V numbers: a total without bound leaves no probability.
            logits.div_(_masked(total, padding, torch.inf))
            if epsilon:
                logits.sub_(others if padding is None else _masked(torch.full_like(total, others), padding))
            logits.scatter_add_(1, target, _masked(torch.full_like(of_target, epsilon + others - 1), padding))
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


def _masked(values: Tensor, padding: Tensor | None, by: float = 0.0) -> Tensor:
    return values if padding is None else values.masked_fill(padding, by)
