"""Descriptions of language models in the configurations of checkpoints, checked before a model is built from one."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.config_types import check_fields, fields_of
from lmfusion.checkpoint.contents import check_named_sizes, model_settings
from lmfusion.checkpoint.reading import first_line
from lmfusion.errors import InputError, naming
from lmfusion.lm.interface import FAMILIES
from lmfusion.lm.old_checkpoints import modern_lm, modern_side

_ENDING = "_lm_config"
_BESIDE = {"symbols": list[str], "targets": list[str], "reading": dict[str, Any]}
"""Values that no family's ``Config`` has."""


def read_side(name: str, stored: Any) -> dict[str, Any]:
    """Return what a configuration says of a side's language model, in the terms of today; empty if it says nothing.

    Args:
        name: of the value, for messages: ``src_lm_config`` or another.
        stored: the value, JSON; dictionaries are taken as well.

    Raises:
        InputError: if it describes no language model.
    """
    try:
        values = json.loads(stored) if isinstance(stored, str) else stored or {}
    except (ValueError, RecursionError) as error:  # a number of over 4,300 digits is no JSONDecodeError
        raise InputError(f"its {name} is damaged ({first_line(error)}). Copy or train it again.") from error
    if not isinstance(values, dict) or not all(isinstance(values.get(key, {}), dict) for key in ("lm", "reading")):
        raise InputError(f"its {name} is damaged (it describes no language model). Copy or train it again.")
    return modern_side(values)


def check_description(what: str | Path, description: Mapping[str, Any]) -> None:
    """Refuse a description whose values are of other types than those of its family.

    Args:
        what: where it stands, for messages.
        description: plain values; one of a family that is not registered is not looked at.

    Raises:
        InputError: naming the value.
    """
    family = FAMILIES.get(str(modern_lm(description)["family"]))
    fields = {} if family is None else {**_BESIDE, **fields_of(family.Config)}
    check_fields(what, description, {**fields, "family": str})


def check_described(path: Path, state: Mapping[str, Any]) -> None:
    """Refuse descriptions in a checkpoint that cannot be those of its language models.

    Args:
        path: for messages.
        state: the checkpoint, complete.

    Raises:
        InputError: naming the value.
    """
    for name, stored in model_settings(state).items():
        if isinstance(name, str) and name.endswith(_ENDING) and stored:
            with naming(path):
                described = read_side(name, stored)["lm"]
            check_description(f"{path}: {name}", described)
            check_named_sizes(path, described, state["model"])
