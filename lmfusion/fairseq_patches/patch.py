"""Replace attributes of fairseq once, and give the originals back."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

_ABSENT = object()


@dataclass(frozen=True)
class Patch:
    """One attribute that lmfusion replaces.

    Attributes:
        owner: whose attribute it is: ``"package.module"`` or ``"package.module:Class"``.
        name: of the attribute.
        make: the replacement from the original (as it stands in the owner's ``__dict__``; of a classmethod the
            classmethod object). Where the owner has no such attribute of its own, the inherited one, or None.
        why: what is wrong without it: which documented command gives wrong results, is unsafe or cannot run.
        needless_since: the first fairseq version that does without; "none so far".
        only_if_loaded: leave a module alone that nobody has imported. One of fairseq's commands (``fairseq_cli``)
            changes a program's logging when it is imported, and has no use where it is not the one that runs.
    """

    owner: str
    name: str
    make: Callable[[Any], Any]
    why: str
    needless_since: str = "none so far"
    only_if_loaded: bool = False

    def find_owner(self) -> Any:
        """Import and return the module or class."""
        module, _, path = self.owner.partition(":")
        found: Any = importlib.import_module(module)
        for part in filter(None, path.split(".")):
            found = getattr(found, part)
        return found


_replaced: list[tuple[Any, str, Any]] = []
"""Owner, name and original of every attribute that is replaced just now, in order."""


def apply(table: Sequence[Patch]) -> None:
    """Apply every patch of a table, unless a table is applied already."""
    if _replaced:
        return
    for patch in table:
        if patch.only_if_loaded and patch.owner.partition(":")[0] not in sys.modules:
            continue
        owner = patch.find_owner()
        own = vars(owner).get(patch.name, _ABSENT)
        original = getattr(owner, patch.name, None) if own is _ABSENT else own
        _replaced.append((owner, patch.name, own))
        setattr(owner, patch.name, patch.make(original))


def take_back() -> None:
    """Give every replaced attribute its original back, the last first."""
    while _replaced:
        owner, name, original = _replaced.pop()
        if original is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, original)
