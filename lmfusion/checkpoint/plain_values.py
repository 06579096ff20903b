"""Plain values in the place of objects, so that ``torch.load(weights_only=True)`` reads a checkpoint as it is."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from typing import Any

import numpy as np

_LEFT = ("model", "last_optimizer_state")
"""Entries of a checkpoint that are tensors by name."""
_BY_ATTRIBUTE = ("model", "task")
"""Sections of a configuration that fairseq builds things from, some by attributes."""


def with_plain_values(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without arrays (meters of ``--eval-bleu``) and Namespaces (optimizers without a dataclass).

    Args:
        state: a checkpoint; it is not changed.
    """
    found = {name: value if name in _LEFT else plain(value) for name, value in state.items() if name != "cfg"}
    if isinstance(cfg := state.get("cfg"), dict):
        found["cfg"] = {name: value if name in _BY_ATTRIBUTE else plain(value) for name, value in cfg.items()}
    elif "cfg" in state:
        found["cfg"] = cfg
    return found


def plain(value: Any) -> Any:
    """Return a value with lists, dictionaries and Python's numbers in the place of arrays, Namespaces and numpy's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    if isinstance(value, Namespace):
        return plain(vars(value))
    if type(value) in (dict, OrderedDict):
        return type(value)((name, plain(each)) for name, each in value.items())
    if type(value) in (list, tuple):
        return type(value)(plain(each) for each in value)
    return value
