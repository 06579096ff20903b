"""Cache the keys and values of the positions decoded so far, which every further position attends to.

Concatenating them at every step would copy the whole prefix to add one position. Here they stand in a buffer with
room for more: adding a position writes that position alone. Beam search changes the order of rows before it adds, which
cannot be had without a copy; the copy is then made when the next position is added, with room for it, and attention
finds in the processor's caches what has just been copied.
"""

from __future__ import annotations

import torch
from torch import Tensor


class _Buffer:
    """A buffer of keys and values: ``room`` is B x capacity x 2 x H x D, its first ``filled`` positions are in use."""

    def __init__(self, room: Tensor, filled: int) -> None:
        self.room = room
        self.filled = filled


class KeyValueCache:
    """An immutable cache of the keys and values of one attention module.

    Adding and reordering return another cache. Those that grew out of one share its buffer, and only the
    first to add a position writes into it; the others copy. So a decoding state that somebody kept stays as it was.

    Args:
        buffer: where keys and values stand.
        length: number of positions in this cache.
        order: the buffer's rows in this cache, in their order (B indices); None: all as they stand.
    """

    def __init__(self, buffer: _Buffer, length: int, order: Tensor | None = None) -> None:
        self._buffer = buffer
        self._order = order
        self.length = length

    @classmethod
    def empty(cls, like: Tensor) -> KeyValueCache:
        """Return a cache without positions.

        Args:
            like: B x T x 2 x H x D, keys and values of the shape, type and device that will be added.
        """
        return cls(_Buffer(like[:, :0], 0), 0)

    @property
    def key(self) -> Tensor:
        """Return the keys, B x H x length x D."""
        return self._used[:, :, 0].transpose(1, 2)

    @property
    def value(self) -> Tensor:
        """Return the values, B x H x length x D."""
        return self._used[:, :, 1].transpose(1, 2)

    def add(self, new: Tensor) -> KeyValueCache:
        """Return a cache with new positions behind the others.

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
        """Return a cache whose row b is row ``new_order[b]`` of this one; it may have fewer rows, or more."""
        rows = self._buffer.room.size(0) if self._order is None else self._order.numel()
        if _is_identity(new_order, rows):
            return self
        order = new_order if self._order is None else self._order.index_select(0, new_order)
        return KeyValueCache(self._buffer, self.length, order)

    @property
    def _used(self) -> Tensor:
        """Return the positions in use, B x length x 2 x H x D."""
        used = self._buffer.room[:, : self.length]
        return used if self._order is None else used.index_select(0, self._order)

    def _copy(self, positions: int) -> _Buffer:
        """Copy the positions into a new buffer, with room for this many positions and some more."""
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
    """Return True if no row moves; False on a GPU, where the answer would have to be waited for."""
    if new_order.device.type != "cpu" or new_order.numel() != rows:
        return False
    return torch.equal(new_order, torch.arange(rows))
