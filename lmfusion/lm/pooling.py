"""Pool the states of a sentence into one vector, for heads that classify whole sentences."""

from __future__ import annotations

from typing import Callable, ClassVar

import torch
from torch import Tensor, nn


def mean_state(states: Tensor, padding: Tensor) -> Tensor:
    """Return the mean over the positions without padding: B x T x C and B x T -> B x C."""
    words = (~padding).unsqueeze(-1).to(states.dtype)
    return (states * words).sum(1) / words.sum(1).clamp(min=1)


def first_state(states: Tensor, padding: Tensor) -> Tensor:
    """Return the first state that is no padding, wherever the padding stands: B x T x C and B x T -> B x C."""
    return _at(states, (~padding).int().argmax(dim=1))


def last_state(states: Tensor, padding: Tensor) -> Tensor:
    """Return the last state that is no padding, wherever the padding stands: B x T x C and B x T -> B x C."""
    return _at(states, padding.size(1) - 1 - (~padding).flip(1).int().argmax(dim=1))


def _at(states: Tensor, positions: Tensor) -> Tensor:
    return states[torch.arange(states.size(0), device=states.device), positions]


POOLINGS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "mean": mean_state,
    "first": first_state,
    "last": last_state,
}
"""Ways of pooling that need no weights, by name."""


class Poolable(nn.Module):
    """A model whose states of a sentence can be pooled into one vector.

    Attributes:
        pooling: the way that suits the family, a key of :data:`POOLINGS`; one with a pooler of its own overrides
            :meth:`pool`.
    """

    pooling: ClassVar[str] = "mean"

    def pool(self, states: Tensor, padding: Tensor) -> Tensor:
        """Pool states into one vector a row by the family's way.

        Args:
            states: B x T x C, top states of rows with their frame.
            padding: B x T, True at padding, which may stand on either side.

        Returns:
            B x C.
        """
        return POOLINGS[self.pooling](states, padding)
