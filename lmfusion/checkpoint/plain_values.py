"""Plain values in the place of objects, so that ``torch.load(weights_only=True)`` reads a checkpoint as it is."""

from __future__ import annotations

from argparse import Namespace
from collections import OrderedDict
from typing import Any

import numpy as np

_BY_ATTRIBUTE = ("model", "task")
"""Sections of a configuration that fairseq builds things from, some by attributes."""


def with_plain_values(state: dict[str, Any]) -> dict[str, Any]:
    """Return a checkpoint without arrays (meters of ``--eval-bleu``) and Namespaces (optimizers without a dataclass).

    Args:
        state: a checkpoint; it is not changed.
    """
    # Weights have the versions of their modules as an attribute of their dictionary.
    found = {name: value if name == "model" else plain(value) for name, value in state.items()}
    if isinstance(cfg := state.get("cfg"), dict):
        found["cfg"] = {name: value if name in _BY_ATTRIBUTE else plain(value) for name, value in cfg.items()}
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
