"""Refuse a pickle whose tuples stand for far more than there is of them, before it is read.

A tuple of twice a tuple of twice a tuple … is a few bytes, for each is there once; as a key of a dictionary every value
in it is looked at as often as it is written out, which would take hours.
"""

from __future__ import annotations

from pickletools import OpcodeInfo, markobject
from typing import Any

_MOST = 10_000_000
"""Values that references to tuples may stand for together."""
_GET = frozenset(("GET", "BINGET", "LONG_BINGET"))
_PUT = frozenset(("PUT", "BINPUT", "LONG_BINPUT", "MEMOIZE"))
_FILL = frozenset(("APPEND", "APPENDS", "SETITEM", "SETITEMS", "ADDITEMS", "BUILD"))
_JOIN = frozenset(("TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "REDUCE", "NEWOBJ"))
_MARK = -1


class TupleSizes:
    """Follows a pickle's stack, on which each value is the number of those that it stands for; 1 of lists and the like.

    What a damaged pickle takes from an empty stack counts 1: the reader says what is wrong with it.
    """

    def __init__(self) -> None:
        self._stack: list[int] = []
        self._memo: dict[Any, int] = {}
        self._referred = 0

    def follow(self, operation: OpcodeInfo, argument: Any) -> None:
        """Take one operation of the pickle into account.

        Raises:
            ValueError: if references to tuples stand for too many values.
        """
        if operation.name in _GET:
            self._push_again(self._memo.get(int(argument), 1))
        elif operation.name in _PUT:
            place = len(self._memo) if argument is None else int(argument)
            self._memo[place] = self._stack[-1] if self._stack else 1
        elif operation.name == "DUP":
            self._push_again(self._stack[-1] if self._stack else 1)
        else:
            taken = self._take(operation)
            size = 1 + sum(taken) if operation.name in _JOIN else taken[0] if operation.name in _FILL and taken else 1
            self._stack += [_MARK if kind is markobject else size for kind in operation.stack_after]

    def _push_again(self, size: int) -> None:
        self._referred += size if size > 1 else 0
        if self._referred > _MOST:
            raise ValueError(f"its tuples stand for more than {_MOST:,} values")
        self._stack.append(size)

    def _take(self, operation: OpcodeInfo) -> list[int]:
        """Take what an operation takes from the stack; return it from the bottom up, without a mark."""
        before, taken = operation.stack_before, []
        if markobject in before:
            while self._stack and (size := self._stack.pop()) != _MARK:
                taken.append(size)
            before = before[: before.index(markobject)]
        taken += [self._stack.pop() for _ in before if self._stack]
        return taken[::-1]
