"""Which values the numbers of the recipes can have, told before anything is trained with them."""

from __future__ import annotations

import math
import re

FRACTIONS = ("MAX_RATIO", "ELMO_SCALE", "FT_SCALE", "LENPEN")
"""Numbers that need not be whole, beside rates and dropouts."""
FROM_ZERO = ("SEED", "S2S_WARMUP", "LM_WARMUP", "MIN_LEN", "NO_REPEAT", "MAX_RATIO")
"""Numbers above or at zero; other whole ones are above it."""


def is_number(text: str) -> bool:
    """Return whether a text is a finite number."""
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def wanted_instead(name: str, value: str) -> str:
    """Return what a number of the recipes must be, if the value is not that; else an empty text.

    Args:
        name: as in ``recipes/_common.sh``, such as ``S2S_DROPOUT``.
        value: as given on the command line.
    """
    if not is_number(value):
        return "a number"
    number = float(value)
    if name.endswith("DROPOUT"):
        return "" if 0 <= number < 1 else "a number from 0 to below 1"
    if name.endswith("_LR"):
        return "" if number > 0 else "a number above 0"
    if name not in FRACTIONS and not re.fullmatch(r"-?[0-9]+", value):
        return "a whole number"
    if name == "S2S_PATIENCE":
        return "" if number == -1 or number > 0 else "a whole number above 0, or -1 for no early stop"
    if name in FROM_ZERO:
        return "" if number >= 0 else "0 or more"
    return "" if number > 0 or name == "LENPEN" else "a number above 0"
