"""Flags of fairseq-train as words, before fairseq reads them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import NoReturn

from lmfusion.errors import InputError


def flag_value(words: Sequence[str], *flags: str) -> str | None:
    """Return the value of a flag, by any of its names, among words; None where it is not given.

    Raises:
        InputError: if it stands there without a value.
    """
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument(*flags, dest="value")
    parser.error = refuse  # type: ignore[method-assign]
    value: str | None = parser.parse_known_args(list(words))[0].value
    return value


def languages_of(words: Sequence[str]) -> tuple[str, str] | None:
    """Return the languages that flags translate from and into; None, as to fairseq-train, unless both are given."""
    source, target = flag_value(words, "-s", "--source-lang"), flag_value(words, "-t", "--target-lang")
    return (source, target) if source and target else None


def refuse(message: str) -> NoReturn:
    """Stand in the place of a parser's ``error``, which would end the process."""
    raise InputError(f"the flags of fairseq-train: {message}.")
