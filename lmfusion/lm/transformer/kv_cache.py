"""Keys and values of the positions decoded so far, which every further position attends to.

Concatenating them anew at every step would copy the whole prefix to add one position. Here they stand in a buffer with
room for more: adding a position writes that position alone. Beam search changes the order of rows before it adds, which
cannot be had without a copy; the copy is then made when the next position is added, with room for it, and attention
finds in the processor's caches what has just been copied.
"""

from __future__ import annotations

import torch
from torch import Tensor


class _Buffer:
    """Room for positions: ``room`` is B x capacity x 2 x H x D, its first ``filled`` positions are taken."""

    def __init__(self, room: Tensor, filled: int) -> None:
        self.room = room
        self.filled = filled


class KeyValueCache:
    """The keys and values of one attention.

    It never changes: what adds or reorders gives another one. Those that grew out of one share its buffer, and only the
    first to add a position writes into it; the others copy. So a decoding state that somebody kept stays as it was.

    Args:
        buffer: where keys and values stand.
        length: number of positions that are of this cache.
        order: which of the buffer's rows are of this cache, and in which order; None: all as they stand.
    """

    def __init__(self, buffer: _Buffer, length: int, order: Tensor | None = None) -> None:
        self._buffer = buffer
        self._order = order
        self.length = length

    @classmethod
    def empty(cls, like: Tensor) -> KeyValueCache:
        """A cache of no position.

        Args:
            like: B x T x 2 x H x D, keys and values such as will be added.
        """
        return cls(_Buffer(like[:, :0], 0), 0)

    @property
    def key(self) -> Tensor:
        """B x H x length x D."""
        return self._used[:, :, 0].transpose(1, 2)

    @property
    def value(self) -> Tensor:
        """B x H x length x D."""
        return self._used[:, :, 1].transpose(1, 2)

    def add(self, new: Tensor) -> KeyValueCache:
        """Put new positions behind the others.

        Args:
            new: B x T x 2 x H x D, for every position its key and its value.

        Returns:
            A cache of ``length + T`` positions.
        """
        end = self.length + new.size(1)
        buffer = self._buffer
        if new.requires_grad or buffer.room.requires_grad:
            # Earlier steps need for their gradients what they have read: nothing may be written into it.
            return KeyValueCache(_Buffer(torch.cat([self._used, new], 1), end), end)
        if self._order is not None or buffer.filled > self.length or buffer.room.size(1) < end:
            buffer = self._copy(end)
        buffer.room[:, self.length : end] = new
        buffer.filled = end
        return KeyValueCache(buffer, end)

    def reorder(self, new_order: Tensor) -> KeyValueCache:
        """Row b of the result is row ``new_order[b]``; there may be fewer rows, or more, than before."""
        rows = self._buffer.room.size(0) if self._order is None else self._order.numel()
        if _is_identity(new_order, rows):
            return self
        order = new_order if self._order is None else self._order.index_select(0, new_order)
        return KeyValueCache(self._buffer, self.length, order)

    @property
    def _used(self) -> Tensor:
        """B x length x 2 x H x D."""
        used = self._buffer.room[:, : self.length]
        return used if self._order is None else used.index_select(0, self._order)

    def _copy(self, positions: int) -> _Buffer:
        """The same in a buffer of its own, with room for this many positions and some more."""
        room, order = self._buffer.room, self._order
        rows = room.size(0) if order is None else order.numel()
        # A part of the length, so that a position is copied a few times however many are added.
        copy = room.new_empty(rows, positions + positions // 4 + 16, *room.shape[2:])
        if order is None:
            copy[:, : self.length] = room[:, : self.length]
        else:
            torch.index_select(room[:, : self.length], 0, order, out=copy[:, : self.length])
        return _Buffer(copy, self.length)


def _is_identity(new_order: Tensor, rows: int) -> bool:
    """Whether nothing moves; elsewhere than on a CPU it is not asked, for the answer would have to be waited for."""
    if new_order.device.type != "cpu" or new_order.numel() != rows:
        return False
    return torch.equal(new_order, torch.arange(rows))
