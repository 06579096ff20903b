"""What the configuration in a checkpoint says of language models, those that are not inside included."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lmfusion.checkpoint.reading import first_line, model_config, read_file
from lmfusion.errors import InputError
from lmfusion.fusion.config import NONE, SIDE_NAMES
from lmfusion.fusion.denoiser import CODES
from lmfusion.fusion.interface import FUSIONS
from lmfusion.lm.description import read_side
from lmfusion.lm.interface import FAMILIES
from lmfusion.registration import comes_with_lmfusion


def stored_lm(side: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration's description of a side's language model; refuse a damaged one."""
    name = f"{side}_lm_config"
    return read_side(name, config.get(name))


def start(side: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Describe the language model that a side, or both, started from: side, integration, kind, fingerprint as read."""
    stored = stored_lm(side, config)
    about = {"fusion": str(config.get(f"{side}_fusion", "prefix_lm")), "kind": stored.get("title")}
    return {"side": SIDE_NAMES.get(side, "both"), **about, "fingerprint": stored.get("fingerprint")}


def heads(config: Mapping[str, Any]) -> str:
    """Name the heads of a ``lmfusion_heads`` with their kinds, by its configuration; refuse a damaged one."""
    try:
        return ", ".join(f"{head['name']} ({head['kind']})" for head in json.loads(config["heads_config"]))
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"its heads_config is damaged ({first_line(error)}). Copy or train it again.") from error


def prior(state: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the flags of ``--criterion lm_prior`` in a checkpoint, without ``prior_`` in front; None: another one."""
    flags = dict((state.get("cfg") or {}).get("criterion") or {})
    if flags.get("_name") != "lm_prior":
        return None
    return {name.removeprefix("prior_"): value for name, value in flags.items() if name.startswith("prior_")}


def own_parts(config: Mapping[str, Any]) -> list[str]:
    """Name the integrations and families in a model's configuration that do not come with lmfusion.

    Args:
        config: of the model, as plain values.
    """
    names = []
    for side in SIDE_NAMES:
        named: list[tuple[Mapping[str, Any], str]] = [(FUSIONS, str(config.get(f"{side}_fusion") or NONE))]
        if config.get(f"{side}_lm_config"):
            named.append((FAMILIES, str((stored_lm(side, config).get("lm") or {}).get("family", NONE))))
        for register, name in named:
            part: Any = register.get(name)
            if name != NONE and (part is None or not comes_with_lmfusion(part)):
                names.append(name)
    return list(dict.fromkeys(names))


def why_no_translator(config: Mapping[str, Any], weights: Mapping[str, Any]) -> str:
    """Say why a model cannot be loaded to translate, and what it is for; empty where it can.

    Args:
        config: of the model, as plain values.
        weights: of the model, by name.
    """
    if "heads_config" in config:
        return "is no sequence-to-sequence model: label texts by it with lmfusion predict"
    if not {"encoder_layers", "prefix_lm"} & set(config):
        return "is no sequence-to-sequence model: load it with lmfusion.load_lm"
    if CODES in weights:
        return "learned to denoise, not to translate: start a translation from it with --finetune-from-model"
    return ""


def translates(checkpoint: Path) -> bool:
    """Return True if a checkpoint can be loaded to translate, by what it says of itself; its weights are not read."""
    try:
        state = read_file(checkpoint, mmap=True)
        return not why_no_translator(model_config(checkpoint, state), state["model"])
    except InputError:
        return False


def labels(checkpoint: Path) -> bool:
    """Return True if a checkpoint has heads that label text, by what it says of itself; its weights are not read."""
    try:
        return "heads_config" in model_config(checkpoint, read_file(checkpoint, mmap=True))
    except InputError:
        return False
