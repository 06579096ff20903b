"""Where the words of a padded batch lie.

Everything in :mod:`lmfusion.lm` computes on rows whose words stand at the left and whose padding
stands at the right. Then a causal model needs no padding mask at all (no real position sees the
padding behind it), positions are simply 0, 1, 2, ..., and a sentence has the same states in every
batch. This module brings rows into that order and states back.
"""

from __future__ import annotations

import torch
from torch import Tensor


def _gather_rows(states: Tensor, index: Tensor) -> Tensor:
    """``states[b, index[b, t]]`` for states of B x T x C and an index of B x T."""
    return states.gather(1, index.unsqueeze(-1).expand(-1, -1, states.size(-1)))


class RowLayout:
    """The order of words in each row of a batch.

    Args:
        padding_mask: B x T, True at padding, wherever it stands.

    Attributes:
        padding: B x T, True at padding of the *left-aligned* rows.
        lengths: B, number of words per row.
    """

    def __init__(self, padding_mask: Tensor) -> None:
        self.lengths = (~padding_mask).sum(dim=1)
        steps = torch.arange(padding_mask.size(1), device=padding_mask.device)
        self.padding = steps >= self.lengths.unsqueeze(1)
        # One comparison decides for the whole batch: most batches are right-padded already.
        self.is_left_aligned = bool(torch.equal(self.padding, padding_mask))
        self.has_padding = bool(self.padding.any())
        if not self.is_left_aligned:
            self._to_left = torch.argsort(padding_mask.long(), dim=1, stable=True)
            self._to_original = torch.argsort(self._to_left, dim=1)
        # Position t of a reversed row is word n-1-t; padding stays where it is.
        self._reversal = torch.where(self.padding, steps, self.lengths.unsqueeze(1) - 1 - steps)

    def align(self, tokens: Tensor) -> Tensor:
        """Left-align token rows: B x T -> B x T."""
        return tokens if self.is_left_aligned else tokens.gather(1, self._to_left)

    def restore(self, states: Tensor) -> Tensor:
        """Put states of left-aligned rows where their words stood: B x T x C -> B x T x C."""
        return states if self.is_left_aligned else _gather_rows(states, self._to_original)

    def reverse(self, states: Tensor) -> Tensor:
        """Reverse every left-aligned row within its own length (its own inverse)."""
        if not self.has_padding:
            return states.flip(1)
        return _gather_rows(states, self._reversal)


def shift_right(states: Tensor) -> Tensor:
    """``out[:, i] = states[:, i-1]``, zeros at the beginning; B x T x C."""
    return torch.nn.functional.pad(states, (0, 0, 1, 0))[:, :-1]


def shift_left(states: Tensor) -> Tensor:
    """``out[:, i] = states[:, i+1]``, zeros at the end; B x T x C."""
    return torch.nn.functional.pad(states, (0, 0, 0, 1))[:, 1:]
