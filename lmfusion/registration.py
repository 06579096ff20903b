"""Check a class when it is registered: what its author forgot is named there, and does not fail a training later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from inspect import get_annotations
from types import UnionType
from typing import Any, Optional, Union, get_args, get_origin, get_type_hints

from lmfusion.errors import InputError

_FLAG_TYPES = (str, int, float, bool, Enum)
"""What fairseq makes of a word of the command line."""


def check_class(what: str, part: Any, base: type, *, needs: Iterable[str] = (), flags: bool = False) -> None:
    """Refuse a class that lacks what its interface has no default for, and make its ``Config`` readable to fairseq.

    Args:
        what: the class for messages, e.g. "the family static".
        part: the class.
        base: the class that it has to be a subclass of.
        needs: attributes and methods, besides ``Config``, that the class has to set or override.
        flags: whether the fields of ``Config`` are flags, which need a default and a help text.

    Raises:
        InputError: naming all that is missing.
    """
    if not (isinstance(part, type) and issubclass(part, base)):
        raise InputError(f"{what}: {part!r} is no subclass of {base.__name__}: make it one.")
    where = f"{what} ({part.__module__}.{part.__qualname__})"
    missing = [name for name in ("Config", *needs) if getattr(part, name, None) is getattr(base, name, None)]
    if missing:
        raise InputError(f"{where} has no {', '.join(missing)} of its own, and there is no default: define it there.")
    config: Any = getattr(part, "Config", None)
    if not is_dataclass(config):
        raise InputError(f"{where}: its Config is no dataclass: put @dataclass above it.")
    _resolve_types(config)
    if flags:
        _check_flags(where, config)


def _resolve_types(config: Any) -> None:
    """Put types in the place of their text in a dataclass of fairseq's, which makes flags of fields and reads no text.

    They are text under ``from __future__ import annotations``; see also :func:`as_optional`.
    """
    of_fairseq = hasattr(config, "_get_type")
    if not of_fairseq or not any(isinstance(spec.type, (str, UnionType)) for spec in fields(config)):
        return
    types = get_type_hints(config)
    for spec in fields(config):
        spec.type = as_optional(types[spec.name])
        if spec.name in get_annotations(config):  # those of a base are its own
            config.__annotations__[spec.name] = spec.type


def comes_with_lmfusion(part: type) -> bool:
    """Return whether a family or an integration is one of lmfusion's own, not of a folder of a user's."""
    return part.__module__.startswith("lmfusion.")


def _check_flags(where: str, config: Any) -> None:
    types = get_type_hints(config)
    for spec in fields(config):
        if (spec.default is MISSING and spec.default_factory is MISSING) or "help" not in spec.metadata:
            raise InputError(
                f"{where}: its flag {spec.name} has no default or no help: write {spec.name}: … = field(default=None, "
                f'metadata={{"help": "…"}}).'
            )
        kind, may_be_none = without_none(types[spec.name])
        if spec.default is None and not may_be_none:
            raise InputError(
                f"{where}: its flag {spec.name} is None where it is not given: write {spec.name}: "
                f"{getattr(kind, '__name__', kind)} | None."
            )
        if get_origin(kind) is not list and not (isinstance(kind, type) and issubclass(kind, _FLAG_TYPES)):
            raise InputError(
                f"{where}: its flag {spec.name} is of the type {types[spec.name]}, which fairseq does not parse: use "
                f"str, int, float or bool, or one of these | None, and look at the value in check()."
            )


def without_none(kind: Any) -> tuple[Any, bool]:
    """Return a type without ``None``, and whether that was one of its alternatives.

    Args:
        kind: a type, as ``get_type_hints`` gives it; of several alternatives beside None all stay.
    """
    if get_origin(kind) not in (Union, UnionType):
        return kind, False
    others = tuple(each for each in get_args(kind) if each is not type(None))
    return (others[0] if len(others) == 1 else kind), len(others) < len(get_args(kind))


def as_optional(kind: Any) -> Any:
    """Return ``X | None`` as ``Optional[X]``, the form that fairseq and OmegaConf know."""
    plain, may_be_none = without_none(kind)
    return Optional[plain] if may_be_none else plain


def differing_flag(config: Any, other: Any) -> str | None:
    """Return a flag that two dataclasses of flags have in common and do not mean alike; None without one.

    Args:
        config: dataclass of flags.
        other: another one.
    """
    meanings, theirs = _meanings(config), _meanings(other)
    return next((name for name, meaning in meanings.items() if theirs.get(name, meaning) != meaning), None)


def _meanings(config: Any) -> dict[str, tuple[Any, ...]]:
    types = get_type_hints(config)
    return {each.name: (without_none(types[each.name]), each.default, each.metadata["help"]) for each in fields(config)}
