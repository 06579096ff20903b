"""Refuse a checkpoint whose configuration has values of other types than their fields.

fairseq checks the types of a model that is registered with a dataclass; models of the older kind, and every
architecture by its own name, take what is there.
"""

from __future__ import annotations

import dataclasses
import re
import types
import typing
from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Mapping
from enum import Enum
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, ListConfig, OmegaConf

from lmfusion.checkpoint.literals import evaluate
from lmfusion.errors import InputError

_REFERENCE = re.compile(r"\$\{[\w.]+\}")
"""Text that stands for the value of another field."""


def check_types(path: Path, state: Mapping[str, Any]) -> None:
    """Refuse a checkpoint whose configuration has a value of another type than its field.

    Text from which fairseq reads a value (``"[1, 2]"`` for a list) counts as that value. Fields that the model does not
    have are fairseq's to ignore.

    Args:
        path: for messages.
        state: the checkpoint, with its configuration in ``cfg`` or, of older versions, in ``args``.

    Raises:
        InputError: naming the field, its type and the value.
    """
    args, cfg = state.get("args"), state.get("cfg")
    sections = _plain(cfg) if isinstance(cfg, (Mapping, DictConfig)) else {}
    if isinstance(args, Namespace):
        values = vars(args)
        sections |= {"model": {"_name": values.get("arch"), **values}, "task": {"_name": values.get("task"), **values}}
    for section, values in sections.items():
        values = vars(values) if isinstance(values, Namespace) else values
        if isinstance(values, dict):
            check_fields(path, values, _kinds(section, values.get("_name") or values.get("arch")))


def check_fields(path: Path, values: Mapping[Any, Any], kinds: Mapping[str, Any]) -> None:
    """Refuse configuration values that are not of the types given for their names.

    Args:
        path: for messages.
        values: by name.
        kinds: types as dataclasses write them, by name; others are not looked at.

    Raises:
        InputError: naming the field, its type and the value.
    """
    for name in values.keys() & kinds.keys():
        if not _fits(kinds[name], values[name]):
            wanted = getattr(kinds[name], "__name__", None) or str(kinds[name])
            raise InputError(
                f"{path} is damaged or not what it says: {name} of its configuration is {str(values[name])[:100]!r} "
                f"({type(values[name]).__name__}), not {wanted}. Nothing of it was used."
            )


def fields_of(config: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name."""
    hints = typing.get_type_hints(config)
    return {field.name: hints.get(field.name, Any) for field in dataclasses.fields(config) if field.name[0] != "_"}


def _plain(cfg: Any) -> dict[str, Any]:
    """Return sections as dictionaries or Namespaces, without looking up references."""
    if not isinstance(cfg, DictConfig):
        return dict(cfg)
    return {str(name): OmegaConf.to_container(section) if isinstance(section, (DictConfig, ListConfig)) else section
            for name, section in cfg.items_ex(resolve=False)}  # fmt: skip


def _kinds(section: str, name: Any) -> dict[str, Any]:
    """Return the types of a section's fields, as far as they are known."""
    # Not above: what reads a checkpoint without building a model does without fairseq.
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    registries = {"model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}, "task": TASK_REGISTRY}
    registries |= {group: registry["registry"] for group, registry in REGISTRIES.items()}
    if section not in registries:
        config = fields_of(FairseqConfig).get(section)
        return fields_of(config) if dataclasses.is_dataclass(config) else {}
    owner = registries[section].get(name) if isinstance(name, str) else None
    config = getattr(owner, "__dataclass", None)
    if dataclasses.is_dataclass(config):
        return fields_of(config)
    return _flags_of(owner) if owner is not None else {}


def _flags_of(owner: Any) -> dict[str, Any]:
    """Return the types of the flags of a model or task of the older kind: of numbers, switches and fairseq's lists."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    if hasattr(owner, "add_args"):
        owner.add_args(parser)
    numbers = {action.dest: action.type for action in parser._actions if action.nargs is None}
    switches = {action.dest: bool for action in parser._actions if action.nargs == 0}
    known = {name: kind for name, kind in numbers.items() if kind in (int, float) or _is_reader(kind)}
    return {**known, **switches}


def _is_reader(kind: Any) -> bool:
    """Return True if a flag's type is a function of fairseq that parses a value from text."""
    return isinstance(kind, types.FunctionType) and kind.__module__.startswith("fairseq.")


def _fits(kind: Any, value: Any) -> bool:
    """Return True if a value, or what fairseq parses from it if it is text, has a type."""
    if value is None or kind is Any or (isinstance(value, str) and _REFERENCE.fullmatch(value)):
        return True
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        return any(_fits(part, value) for part in inner if part is not type(None))
    if kind is str or (isinstance(kind, type) and issubclass(kind, Enum)):
        return isinstance(value, (str, int, float, Enum))
    if _is_reader(kind):
        return not isinstance(value, str) or _can_read(kind, value)
    if isinstance(value, str) and (kind in (bool, int, float, list) or origin is list):
        if not _can_read(evaluate, value):
            return False
        value = evaluate(value)
    if kind in (bool, int, float):
        return isinstance(value, (int, float)) and (kind is not int or float(value).is_integer())
    if kind is list or origin is list:
        return isinstance(value, (list, tuple)) and all(_fits(part, element) for part in inner for element in value)
    return isinstance(value, (dict, Namespace)) if dataclasses.is_dataclass(kind) else True


def _can_read(reader: Callable[[str], Any], text: str) -> bool:
    try:
        reader(text)
    except (ValueError, TypeError, SyntaxError, ArgumentTypeError, RecursionError, MemoryError):
        return False
    return True
