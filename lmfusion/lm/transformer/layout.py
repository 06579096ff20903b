"""Bring the rows of a padded batch into left-aligned order, and states back.

Everything in :mod:`lmfusion.lm` computes on rows whose words stand at the left and whose padding
stands at the right. Then a causal model needs no padding mask at all (no real position sees the
padding behind it), positions are simply 0, 1, 2, ..., and a sentence has the same states in every
batch.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

MUCH_PADDING = 0.07
"""Share of padding (0..1) from which computing on words alone saves more than gathering them costs."""


def _gather_rows(states: Tensor, index: Tensor) -> Tensor:
    """Return ``states[b, index[b, t]]`` for states of B x T x C and an index of B x T."""
    return states.gather(1, index.unsqueeze(-1).expand(-1, -1, states.size(-1)))


class RowLayout:
    """The order of words in each row of a batch.

    Args:
        padding_mask: B x T, True at padding, wherever it stands.

    Attributes:
        padding: B x T, True at padding of the *left-aligned* rows.
        lengths: B, number of words per row.
        packs: True if :meth:`pack` leaves padding out. On a GPU it does not: the number of words would have to be
            waited for, and it has not been measured there. Nor in a compiled graph, whose shapes it would leave open.
    """

    def __init__(self, padding_mask: Tensor) -> None:
        self.lengths = (~padding_mask).sum(dim=1)
        steps = torch.arange(padding_mask.size(1), device=padding_mask.device)
        self.padding = steps >= self.lengths.unsqueeze(1)
        # One comparison decides for the whole batch: most batches are right-padded already. A graph that is being
        # compiled would break at it: there every batch takes the way that serves them all.
        compiles = torch.compiler.is_compiling()
        self.is_left_aligned = not compiles and bool(torch.equal(self.padding, padding_mask))
        self.has_padding = compiles or bool(self.padding.any())
        if not self.is_left_aligned:
            self._to_left = torch.argsort(padding_mask.long(), dim=1, stable=True)
            self._to_original = torch.argsort(self._to_left, dim=1)
        self.packs = not compiles and padding_mask.device.type == "cpu" and _share(self.padding) > MUCH_PADDING
        if self.packs:
            self._words = (~self.padding).flatten().nonzero().squeeze(1)
        # Position t of a reversed row is word n-1-t; padding stays where it is.
        self._reversal = torch.where(self.padding, steps, self.lengths.unsqueeze(1) - 1 - steps)

    def align(self, tokens: Tensor) -> Tensor:
        """Left-align token rows: B x T -> B x T."""
        return tokens if self.is_left_aligned else tokens.gather(1, self._to_left)

    def restore(self, states: Tensor) -> Tensor:
        """Put states of left-aligned rows where their words stood: B x T x C -> B x T x C."""
        return states if self.is_left_aligned else _gather_rows(states, self._to_original)

    def reverse(self, states: Tensor) -> Tensor:
        """Reverse every left-aligned row within its own length: B x T x C -> B x T x C; it is its own inverse."""
        if not self.has_padding:
            return states.flip(1)
        return _gather_rows(states, self._reversal)

    def pack(self, states: Tensor) -> Tensor:
        """Return the N words of a batch without padding, B x T x C -> N x C, where that pays (``packs``)."""
        if not self.packs:
            return states
        packed: Tensor = _Pack.apply(states.flatten(0, 1), self._words)
        return packed

    def unpack(self, packed: Tensor) -> Tensor:
        """Return what :meth:`pack` was given, with zeros at padding: N x C -> B x T x C."""
        if not self.packs:
            return packed
        states: Tensor = _Unpack.apply(packed, self._words, self.padding.numel())
        return states.unflatten(0, self.padding.shape)


def _share(mask: Tensor) -> float:
    return float(mask.sum()) / max(1, mask.numel())


class _Pack(torch.autograd.Function):
    """A selection of rows by an index without repetitions, whose gradients need not be added up."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, index: Tensor) -> Tensor:
        ctx.save_for_backward(index)
        ctx.rows = states.size(0)
        return states.index_select(0, index)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (index,) = ctx.saved_tensors
        unpacked: Tensor = _Unpack.apply(grads[0], index, ctx.rows)
        return unpacked, None


class _Unpack(torch.autograd.Function):
    """The transpose of :class:`_Pack`."""

    @staticmethod
    def forward(ctx: Any, packed: Tensor, index: Tensor, rows: int) -> Tensor:
        ctx.save_for_backward(index)
        return packed.new_zeros(rows, packed.size(1)).index_copy_(0, index, packed)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        (index,) = ctx.saved_tensors
        packed: Tensor = _Pack.apply(grads[0], index)
        return packed, None, None


def shift_right(states: Tensor) -> Tensor:
    """Shift states (B x T x C) by one: ``out[:, i] = states[:, i-1]``, with zeros at the beginning."""
    return torch.nn.functional.pad(states, (0, 0, 1, 0))[:, :-1]


def shift_left(states: Tensor) -> Tensor:
    """Shift states (B x T x C) by one: ``out[:, i] = states[:, i+1]``, with zeros at the end."""
    return torch.nn.functional.pad(states, (0, 0, 0, 1))[:, 1:]
