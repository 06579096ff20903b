"""Dictionaries: the released format has none inside, and every index is valid in a wrong one."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.convert.language_model import rows
from lmfusion.errors import UserError


def read_dictionary(path: str | Path) -> Dictionary:
    """Read a ``dict.txt`` of fairseq.

    Raises:
        UserError: if there is no such file, or it is none.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise UserError(f"{path} does not exist: give the dict.txt that the model was trained with.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} cannot be read as a dictionary ({error}).") from error
    dictionary = Dictionary()
    try:
        dictionary.add_from_file(io.StringIO(text))
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise UserError(
            f"{path} is no dictionary of fairseq, a symbol and its count on every line ({reason})."
        ) from error
    return dictionary


def check_size(dictionary: Dictionary, path: str | Path, weights: Mapping[str, Tensor], embedding: str) -> None:
    """Refuse a dictionary of another size than the embedding's.

    Raises:
        UserError: naming both sizes.
    """
    if embedding in weights and rows(weights, embedding) != len(dictionary):
        special = dictionary.nspecial
        raise UserError(
            f"{path} has {len(dictionary)} symbols ({len(dictionary) - special} lines and fairseq's {special} special "
            f"ones), and {embedding} has {rows(weights, embedding)} rows: give the dictionary that the model was "
            f"trained with."
        )
