"""Refuse a content whose lists and dictionaries contain themselves, or stand for far more than there is of them."""

from __future__ import annotations

from argparse import Namespace
from typing import Any

_DEEPEST = 100
_TIMES, _SPARE = 10, 1_000_000
"""How much a content may be, written out: times its size, and values and characters beyond that."""
_LONG = 100
_CONTAINERS = (dict, list, tuple, set, frozenset, Namespace)


def check_nesting(content: Any) -> None:
    """Refuse a content that would take all memory of whatever copies or prints it.

    A list twice in a list twice in a list … is a few bytes in a file, for the list is there once.

    Args:
        content: dictionaries, lists, tuples, sets and namespaces, with any values in them.

    Raises:
        ValueError: saying where and what.
    """
    scales = _Scales()
    total = scales.weigh(content, "the content", 0)
    if total > _TIMES * scales.distinct + _SPARE:
        raise ValueError(f"it is {total:,} values and characters, written out, of which {scales.distinct:,} differ")


class _Scales:
    """Counts values and characters.

    Attributes:
        distinct: those that are there; of a container or a long text in two places those of one.
    """

    def __init__(self) -> None:
        self.distinct = 0
        self._weights: dict[int, int] = {}
        self._begun: set[int] = set()

    def weigh(self, value: Any, place: str, depth: int) -> int:
        """Return the number of values and characters in a value, written out."""
        if id(value) in self._weights:
            return self._weights[id(value)]
        if id(value) in self._begun or depth > _DEEPEST:
            what = "contains itself" if id(value) in self._begun else f"is nested more than {_DEEPEST} times"
            raise ValueError(f"{place[:100]} {what}")
        self._begun.add(id(value))
        own, inside = _size(value), 0
        for name, part in _parts(value):
            if isinstance(part, _CONTAINERS) or _size(part) > _LONG:
                label = name if isinstance(name, (str, int)) else "…"
                inside += self.weigh(part, f"{place[:100]}[{str(label)[:40]}]", depth + 1)
            else:
                own += _size(part)
        self._weights[id(value)] = own + inside
        self.distinct += own
        return own + inside


def _size(value: Any) -> int:
    return 1 + (len(value) if isinstance(value, (str, bytes)) else 0)


def _parts(value: Any) -> list[tuple[Any, Any]]:
    """Return the values inside a container, by name or number; keys of dictionaries are values, too."""
    if isinstance(value, (dict, Namespace)):
        items = value if isinstance(value, dict) else vars(value)
        return [("", key) for key in items] + list(items.items())
    return list(enumerate(value)) if isinstance(value, _CONTAINERS) else []
