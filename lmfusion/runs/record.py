"""The JSON files of a run folder: read with a check of what they hold, and written whole."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.errors import InputError
from lmfusion.text.json_text import parse

_NUMBER, _MAYBE = (int, float), (int, float, type(None))
_LARGEST = 1e300
_SIDE = "source target"
_RESULTS = ("updates", "best_valid_loss", "best_valid_perplexity", "tokens_per_second", "sentences")
# What run.json may hold: types, numbers that are finite, one of several words, the form of each item of a list, or
# forms by name, where "*" is any name, and "?" marks what may be absent.
_RECORD: dict[str, Any] = {
    "seed?": (int, type(None)),
    "versions?": (dict, type(None)),  # null: not known
    "machine?": (dict, type(None)),
    "steps?": {
        "*": {
            "state?": str,
            "command?": [str],
            "seconds?": math.isfinite,
            "attempts?": int,
            "result?": {f"{name}?": _MAYBE for name in _RESULTS},
            "places?": {"*": str},
            "data_sha256?": (dict, type(None)),
            "launch?": {"environment?": {}, "processes?": {}, "precision?": [str]},
        }
    },
    "model?": {
        "trainable?": int,
        "frozen?": int,
        "mixes?": [{"side": _SIDE, "shares": {"*": _NUMBER}, "gamma": _NUMBER}],
        "language_models?": [{"side": _SIDE}],
    },
}


def read_record(path: Path) -> dict[str, Any]:
    """Return the content of a run.json, empty if there is no such file.

    Raises:
        InputError: it is no JSON object, or a part of it is of a type that is never written there (the part is named).
    """
    record = read_json(path)
    _check(path, path.name, record, _RECORD)
    return record


def _check(path: Path, name: str, value: Any, form: Any) -> None:
    """Refuse a value that is not of its form, see _RECORD."""
    if isinstance(form, dict) and isinstance(value, dict):
        for key, inner in form.items():
            for each in value if key == "*" else [key.rstrip("?")]:
                if each in value or not key.endswith("?"):
                    _check(path, each, value.get(each), inner)
    elif isinstance(form, list) and isinstance(value, list):
        for each in value:
            _check(path, name, each, form[0])
    elif not (value in form.split() if isinstance(form, str) else _is_of_type(value, form)):
        raise InputError(
            f"{path}: {name} is {str(value)[:40]!r}, which is never written there. Was it edited? Fix it or delete the "
            f"run folder."
        )


def _is_of_type(value: Any, form: Any) -> bool:
    if isinstance(value, int) and abs(value) > _LARGEST:
        return False
    if form is math.isfinite:
        return _is_of_type(value, _NUMBER) and math.isfinite(value)
    return isinstance(value, type(form) if isinstance(form, (dict, list)) else form) and not isinstance(value, bool)


def read_json(path: Path) -> dict[str, Any]:
    """Return a JSON object from a file, empty if there is no such file.

    Raises:
        InputError: the file does not hold one.
    """
    if not path.exists():
        return {}
    if not path.is_file():
        raise InputError(f"{path}: is no file. Fix it or delete the run folder.")
    try:
        content = parse(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise InputError(f"{path}: is not JSON ({error}). Was it edited? Fix it or delete the run folder.") from error
    if not isinstance(content, dict):
        raise InputError(f"{path}: holds no JSON object. Fix it or delete the run folder.")
    return content


def write_json(path: Path, content: dict[str, Any] | list[Any]) -> None:
    """Write a JSON object or array; the file is whole at every moment.

    Raises:
        CannotWriteError: the system refuses.
    """
    with replacing(path) as stream:
        stream.write((json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())
