"""The settings of a Hugging Face model, and those numbers in them of which transformers makes lists before all else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError
from lmfusion.text.json_text import parse

MOST_LAYERS, MOST_LABELS = 1000, 1_000_000
"""More are a damaged file's: every layer takes memory, however narrow it is."""
_LAYERS = re.compile(r"(?:^|_)layers?$")


def read_settings(folder: Path) -> dict[str, Any]:
    """Read a folder's config.json.

    Raises:
        InputError: if it cannot be read, or has numbers that no model has.
    """
    file = folder / "config.json"
    try:
        found = parse(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} is damaged ({str(error).splitlines()[0]}): download it again.") from error
    if not isinstance(found, dict):
        return {}
    try:
        check_counts(found)
    except InputError as error:
        raise InputError(f"{file}: {error} Download it again.") from error
    return found


def check_counts(settings: Mapping[str, Any]) -> None:
    """Refuse numbers of layers and labels that no model has.

    Args:
        settings: by name, as in config.json.

    Raises:
        InputError: naming the setting.
    """
    for name, value in settings.items():
        most = MOST_LAYERS if _LAYERS.search(name) else MOST_LABELS if name == "num_labels" else None
        if most is not None and isinstance(value, (int, float)) and value > most:
            raise InputError(f"its {name} is {value:,}, and {most:,} is the most that a model has.")
