"""What checkpoints written before say of a language model inside, in the terms of today. The one place that knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FAMILY_NAMES = {"bi_transformer_lm": "cloze", "uni_transformer_lm": "causal"}
"""Families were named after their fairseq models."""

RELEASED = "released"
"""The family of language models that are read in a way of the paper's released code (lmfusion/convert)."""

_USUAL = {"leading_eos": True, "top": "wide", "states": None}


def modern_lm(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a language model with the family's name of today."""
    family = description.get("family")
    return {**description, "family": FAMILY_NAMES.get(str(family), family)}


def modern_side(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a checkpoint's ``src_lm_config`` or ``tgt_lm_config`` says, in the terms of today.

    A converted model's way of reading its language model stood beside the description; it is a family now.

    Args:
        stored: the JSON as a dictionary; ``lm``, ``dictionary_hash``, ``fingerprint`` and perhaps ``reading``.
    """
    side = {name: value for name, value in stored.items() if name != "reading"}
    lm = modern_lm(stored.get("lm") or {})
    reading = {**_USUAL, **(stored.get("reading") or {})}
    if reading != _USUAL:
        lm = {**lm, "family": RELEASED, "reading": reading}
    return {**side, "lm": lm}
