"""Translate how older checkpoints describe a language model into the terms of today; the only place that does so."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FAMILY_NAMES = {"bi_transformer_lm": "cloze", "uni_transformer_lm": "causal"}
"""Present names of families by those in older checkpoints, which are the names of fairseq models."""

RELEASED = "released"
"""The family of converted language models that follow a variant of the paper's released code (lmfusion/convert)."""

_USUAL = {"leading_eos": True, "top": "wide", "states": None}


def modern_lm(description: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of a language model with its family's present name.

    Args:
        description: plain values, as a checkpoint of any version has them.
    """
    family = description.get("family")
    return {**description, "family": FAMILY_NAMES.get(str(family), family)}


def modern_side(stored: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of a checkpoint's ``src_lm_config`` or ``tgt_lm_config`` in the terms of today.

    Older checkpoints kept a converted model's variant (``reading``) beside the description; it is a family now.

    Args:
        stored: the JSON as a dictionary; ``lm``, ``dictionary_hash``, ``fingerprint`` and perhaps ``reading``.
    """
    side = {name: value for name, value in stored.items() if name != "reading"}
    lm = modern_lm(stored.get("lm") or {})
    reading = {**_USUAL, **(stored.get("reading") or {})}
    if reading != _USUAL:
        lm = {**lm, "family": RELEASED, "reading": reading}
    return {**side, "lm": lm}
