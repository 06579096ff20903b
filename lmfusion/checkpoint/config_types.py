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
from typing import Any, Optional

from omegaconf import MISSING, DictConfig, ListConfig, OmegaConf

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
            name = values.get("_name") or values.get("arch")
            if not isinstance(name, (str, type(None))):
                raise InputError(
                    f"{path} is damaged or not what it says: _name of its configuration is {str(name)[:100]!r} "
                    f"({type(name).__name__}), where the name of a {section} belongs. Nothing of it was used."
                )
            kinds, is_dataclass = _kinds(section, name)
            check_fields(path, values, kinds, as_text=is_dataclass)


def check_fields(
    path: str | Path, values: Mapping[Any, Any], kinds: Mapping[str, Any], *, as_text: bool = False
) -> None:
    """Refuse configuration values that are not of the types given for their names.

    Args:
        path: for messages.
        values: by name.
        kinds: types as dataclasses write them, by name; others are not looked at.
        as_text: take a number that is written as text, which OmegaConf reads.

    Raises:
        InputError: naming the field, its type and the value.
    """
    for name in values.keys() & kinds.keys():
        if not _fits(kinds[name], values[name], as_text):
            raise InputError(
                f"{path} is damaged or not what it says: {name} of its configuration is {_shown(values[name])!r} "
                f"({type(values[name]).__name__}), not {_named(kinds[name])}. Nothing of it was used."
            )


def _shown(value: Any) -> str:
    """Return the beginning of a value as text; Python writes no number of over 4,300 digits."""
    try:
        return str(value)[:100]
    except ValueError:
        return "a number of thousands of digits"


def _named(kind: Any) -> str:
    parts = [part for part in typing.get_args(kind) if part is not type(None)]
    if typing.get_origin(kind) is typing.Union:
        return " or ".join(map(_named, parts))
    return str(kind) if parts else getattr(kind, "__name__", str(kind))


def fields_of(config: Any) -> dict[str, Any]:
    """Return the types of a dataclass's fields by name; None is a value of those whose default is None or a reference.

    Args:
        config: the dataclass.
    """
    hints, found = typing.get_type_hints(config), {}
    for field in dataclasses.fields(config):
        if field.name[0] != "_":
            kind, default = hints.get(field.name, Any), field.default
            refers = isinstance(default, str) and (default == MISSING or _REFERENCE.fullmatch(default))
            found[field.name] = Optional[kind] if default is None or refers else kind
    return found


def _plain(cfg: Any) -> dict[str, Any]:
    """Return sections as dictionaries or Namespaces, without looking up references."""
    if not isinstance(cfg, DictConfig):
        return dict(cfg)
    return {str(name): OmegaConf.to_container(section) if isinstance(section, (DictConfig, ListConfig)) else section
            for name, section in cfg.items_ex(resolve=False)}  # fmt: skip


def _kinds(section: str, name: str | None) -> tuple[dict[str, Any], bool]:
    """Return the types of a section's fields, as far as they are known, and whether they are those of a dataclass."""
    # Not above: what reads a checkpoint without building a model does without fairseq.
    from fairseq.dataclass.configs import FairseqConfig
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    registries = {"model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY}, "task": TASK_REGISTRY}
    registries |= {group: registry["registry"] for group, registry in REGISTRIES.items()}
    if section in registries:
        owner = registries[section].get(name)
        config = getattr(owner, "__dataclass", None)
    else:
        owner, config = None, fields_of(FairseqConfig).get(section)
    if dataclasses.is_dataclass(config):
        return fields_of(config), True
    return (_flags_of(owner), False) if owner is not None else ({}, False)


def _flags_of(owner: Any) -> dict[str, Any]:
    """Return the types of the flags of a model or task of the older kind: of numbers, switches and fairseq's lists."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    if hasattr(owner, "add_args"):
        owner.add_args(parser)
    numbers = {action.dest: action.type for action in parser._actions if action.nargs is None}
    switches = {action.dest: bool for action in parser._actions if action.nargs == 0}
    known = {name: kind for name, kind in numbers.items() if kind in (int, float) or _is_reader(kind)}
    return {name: Optional[kind] for name, kind in {**known, **switches}.items()}  # None: the flag was not given


def _is_reader(kind: Any) -> bool:
    """Return True if a flag's type is a function of fairseq that parses a value from text."""
    return isinstance(kind, types.FunctionType) and kind.__module__.startswith("fairseq.")


def _fits(kind: Any, value: Any, as_text: bool) -> bool:
    """Return True if a value, or what fairseq parses from it if it is text, has a type."""
    if kind is Any or (as_text and isinstance(value, str) and _REFERENCE.fullmatch(value)):
        return True
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Union, getattr(types, "UnionType", typing.Union)):
        return any(_fits(part, value, as_text) for part in inner)
    if value is None or kind is type(None):
        return value is None and kind is type(None)
    if kind is str or (isinstance(kind, type) and issubclass(kind, Enum)):
        return isinstance(value, (str, int, float, Enum))
    if _is_reader(kind):
        return not isinstance(value, str) or _can_read(kind, value)
    if kind in (bool, int, float):
        return _is_number(kind, value) or (as_text and isinstance(value, str) and _can_read(_READERS[kind], value))
    if kind is list or origin is list:
        value = evaluate(value) if isinstance(value, str) and _can_read(evaluate, value) else value
        return isinstance(value, (list, tuple)) and all(_fits(part, each, as_text) for part in inner for each in value)
    return isinstance(value, (dict, Namespace)) if dataclasses.is_dataclass(kind) or origin is dict else True


def _is_number(kind: Any, value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and (kind is not int or value.is_integer()))


def _switch(text: str) -> None:
    """Refuse a text that is none of YAML's words for True and False."""
    if text.lower() not in _SWITCHES:
        raise ValueError(f"{text[:20]!r} is no switch")


_SWITCHES = frozenset(("yes", "y", "on", "true", "1", "no", "n", "off", "false", "0"))
_READERS: dict[Any, Callable[[str], Any]] = {bool: _switch, int: int, float: float}


def _can_read(reader: Callable[[str], Any], text: str) -> bool:
    try:
        reader(text)
    except (ValueError, TypeError, SyntaxError, ArgumentTypeError, RecursionError, MemoryError):
        return False
    return True
