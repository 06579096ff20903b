"""The ELMo mix, ``gamma * sum_i softmax(lambda)_i * LN(h_i)`` (Peters et al. 2018; Edunov et al. 2019, 2.1)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn


class ScalarMix(nn.Module):
    """A learned mix of layer states, ``gamma * sum_i softmax(lambda)_i * LN(h_i)`` (SPEC section 2).

    Args:
        num_states: L, number of states to mix.
        state_dim: C', channels of each.
        dropout: probability of leaving a state out of the mix of a batch in training (the others
            are scaled up).
        affine: give the layer norm, which all states share, a learned scale and shift.
    """

    def __init__(self, num_states: int, state_dim: int, *, dropout: float, affine: bool) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.zeros(num_states))  # lambda: all states equal
        self.gamma = nn.Parameter(torch.ones(1))
        self.layer_norm = nn.LayerNorm(state_dim, elementwise_affine=affine)
        self.dropout = dropout

    def forward(self, states: list[Tensor]) -> Tensor:
        """Compute the mix of the layer states.

        Args:
            states: L tensors of B x T x C'.

        Returns:
            B x T x C'.

        Raises:
            ValueError: if there are not L of them.
        """
        if len(states) != self.weights.numel():
            raise ValueError(f"{len(states)} states were given to a mix of {self.weights.numel()}")
        shares = F.dropout(self.shares(), self.dropout, self.training)
        # Fifteen roundings to half precision would add up to more than a hundredth: the sum is taken in float32.
        mixed = shares.new_zeros(states[0].size(-1), dtype=torch.promote_types(shares.dtype, torch.float32))
        for share, state in zip(shares, states):
            normal = self._normalize(state)
            is_half = normal.dtype in (torch.float16, torch.bfloat16)  # one pass over memory, rounded once
            mixed = torch.addcmul(mixed, share, normal) if is_half else mixed + share * normal
        if self.layer_norm.weight is not None:
            # The states share scale and shift, so these come out of the sum.
            mixed = self.layer_norm.weight * mixed + self.layer_norm.bias * shares.sum()
        return (self.gamma * mixed).to(self.gamma.dtype)

    def shares(self) -> Tensor:
        """Return softmax(lambda): L shares that sum to 1."""
        return F.softmax(self.weights, dim=0)

    def _normalize(self, state: Tensor) -> Tensor:
        return F.layer_norm(state, self.layer_norm.normalized_shape, eps=self.layer_norm.eps)
