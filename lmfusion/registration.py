"""Check a class when it is registered: what its author forgot is named there, and does not fail a training later."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import MISSING, fields, is_dataclass
from typing import Any

from lmfusion.errors import InputError


def check_class(what: str, part: Any, base: type, *, needs: Iterable[str] = (), flags: bool = False) -> None:
    """Refuse a class that lacks what its interface has no default for.

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
    for spec in fields(config) if flags else ():
        if (spec.default is MISSING and spec.default_factory is MISSING) or "help" not in spec.metadata:
            raise InputError(
                f"{where}: its flag {spec.name} has no default or no help: write {spec.name}: … = field(default=None, "
                f'metadata={{"help": "…"}}).'
            )
