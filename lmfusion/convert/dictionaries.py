"""Dictionaries: the released format has none inside, and every index is valid in a wrong one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.convert.language_model import rows
from lmfusion.errors import InputError


def check_size(dictionary: Dictionary, path: str | Path, weights: Mapping[str, Tensor], embedding: str) -> None:
    """Refuse a dictionary of another size than the embedding's.

    Raises:
        InputError: naming both sizes.
    """
    if embedding in weights and rows(weights, embedding) != len(dictionary):
        special = dictionary.nspecial
        raise InputError(
            f"{path} has {len(dictionary)} symbols ({len(dictionary) - special} lines and fairseq's {special} special "
            f"ones), and {embedding} has {rows(weights, embedding)} rows: give the dictionary that the model was "
            f"trained with."
        )
