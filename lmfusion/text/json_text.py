"""JSON of files that a person may have been given: one kind of error for all that can be wrong with it."""

from __future__ import annotations

import json
from typing import Any


def parse(text: str) -> Any:
    """Return the content of a JSON text.

    Raises:
        ValueError: if it is none, is nested too deeply, or has a text that can stand in no file: a NUL, or half of a
            surrogate pair.
    """
    try:
        content = json.loads(text)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    waiting = [content]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += [*value, *value.values()]
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str) and "\0" in value:
            raise ValueError("a text in it has a NUL")
        elif isinstance(value, str):
            value.encode()  # a UnicodeEncodeError is a ValueError
    return content
