"""Read dictionaries from files."""

from __future__ import annotations

import io
from pathlib import Path

from fairseq.data import Dictionary

from lmfusion.errors import InputError


def read_dictionary(path: str | Path) -> Dictionary:
    """Read a ``dict.txt`` of fairseq.

    Args:
        path: of the file, a symbol and its count on every line.

    Raises:
        InputError: if there is no such file, or it is no dictionary.
    """
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist: give the dict.txt that the model was trained with.") from error
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as a dictionary ({error}).") from error
    return read_dictionary_text(text, str(path))


def read_dictionary_text(text: str, what: str) -> Dictionary:
    """Read the text of a ``dict.txt`` of fairseq.

    Args:
        text: a symbol and its count on every line.
        what: its name, for messages.

    Raises:
        InputError: if it is no dictionary.
    """
    dictionary = Dictionary()
    try:
        dictionary.add_from_file(io.StringIO(text))
    except (ValueError, RuntimeError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(
            f"{what} is no dictionary of fairseq, a symbol and its count on every line ({reason})."
        ) from error
    return dictionary
