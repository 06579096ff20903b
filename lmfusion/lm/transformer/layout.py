"""Bring the rows of a padded batch into left-aligned order, and states back.

Everything in :mod:`lmfusion.lm` computes on rows whose words stand at the left and whose padding
stands at the right. Then a causal model needs no padding mask at all (no real position sees the
padding behind it), positions are simply 0, 1, 2, ..., and a sentence has the same states in every
batch.
"""

from __future__ import annotations

from copy import copy
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

MUCH_PADDING = 0.07
"""Share of padding (0..1) from which computing on words alone saves more than gathering them costs."""


def reads_freely(tensor: Tensor) -> bool:
    """Return whether the program may look at a tensor's values: on a CPU, outside of a compiled graph.

    On a GPU it would have to wait until all that was asked for before is computed, and a graph would break there.
    """
    return tensor.device.type == "cpu" and not torch.compiler.is_compiling()


def _gather_rows(states: Tensor, index: Tensor) -> Tensor:
    """Return ``states[b, index[b, t]]`` for states of B x T x C and an index of B x T."""
    return states.gather(1, index.unsqueeze(-1).expand(-1, -1, states.size(-1)))


class RowLayout:
    """The order of words in each row of a batch.

    Where values cannot be read freely (:func:`reads_freely`), every batch takes the way that serves them all.

    Args:
        padding_mask: B x T, True at padding, wherever it stands.

    Attributes:
        padding: B x T, True at padding of the *left-aligned* rows.
        lengths: B, number of words per row.
        is_left_aligned: True if the rows are known to be so already: most batches are right-padded.
        has_padding: False if it is known that there is none.
        packs: True if :meth:`pack` leaves padding out. On a GPU it does not: the number of words would have to be
            waited for, and it has not been measured there. Nor in a compiled graph, whose shapes it would leave open.
    """

    def __init__(self, padding_mask: Tensor) -> None:
        self.lengths = (~padding_mask).sum(dim=1)
        self.padding = _steps(padding_mask) >= self.lengths.unsqueeze(1)
        self._padded = int(self.padding.sum()) if reads_freely(padding_mask) else None
        self.is_left_aligned = self._padded is not None and torch.equal(self.padding, padding_mask)
        if not self.is_left_aligned:
            self._to_left, self._to_original = _orders(padding_mask, self.lengths)
        self._finish()

    def _finish(self) -> None:
        self._reversal: Tensor | None = None
        self.has_padding = self._padded != 0
        share = (self._padded or 0) / max(1, self.padding.numel())
        self.packs = share > MUCH_PADDING
        if self.packs:
            self._words = (~self.padding).flatten().nonzero().squeeze(1)

    def with_frame(self, size: int) -> RowLayout:
        """Return the layout of the left-aligned rows with ``size`` more words in front of each."""
        if size == 0 and self.is_left_aligned:
            return self
        framed = copy(self)
        framed.lengths, framed.padding = self.lengths + size, F.pad(self.padding, (size, 0))
        framed.is_left_aligned = True
        framed._finish()
        return framed

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
        if self._reversal is None:  # position t of a reversed row is word n-1-t; padding stays where it is
            steps = _steps(self.padding)
            self._reversal = torch.where(self.padding, steps, self.lengths.unsqueeze(1) - 1 - steps)
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


_known = WeakTensorKeyDictionary()
"""Layouts of rows that somebody has laid out, by the tensor of the rows itself."""


def announce(tokens: Tensor, layout: RowLayout) -> None:
    """Make :func:`layout_of` know the layout of this very tensor of rows, B x T, which must not change any more."""
    if not torch.compiler.is_compiling():
        _known[tokens] = layout


def layout_of(tokens: Tensor, padding_idx: int) -> RowLayout:
    """Return the layout of rows of tokens, B x T: the one that was announced for them, or a new one."""
    known = None if torch.compiler.is_compiling() else _known.get(tokens)
    return RowLayout(tokens.eq(padding_idx)) if known is None else known


def _steps(rows: Tensor) -> Tensor:
    return torch.arange(rows.size(1), device=rows.device)


def _orders(padding_mask: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Return the two orders of B x T rows, words first, then padding: where each place's token comes from, and goes to.

    Counting is a fraction of what sorting costs.
    """
    words, padded = (~padding_mask).cumsum(dim=1), padding_mask.cumsum(dim=1)
    to_original = torch.where(padding_mask, lengths.unsqueeze(1) + padded, words) - 1
    to_left = torch.empty_like(to_original).scatter_(1, to_original, _steps(padding_mask).expand_as(to_original))
    return to_left, to_original


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
