"""Build a side's integration from its flags: load the LM, check it, hand it to the integration chosen."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Callable
from typing import Any

from fairseq.data import Dictionary

from lmfusion.errors import InputError
from lmfusion.fusion.config import (
    AUTO,
    SIDE_NAMES,
    SIDES,
    STACKS,
    has_positions,
    integration,
    integration_config,
    make_side,
    starts_stack,
)
from lmfusion.fusion.interface import Fusion, Side
from lmfusion.fusion.learning_rates import rate_of
from lmfusion.lm.description import read_side
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.loading import build, describe, load_lm

logger = logging.getLogger(__name__)

_ALL_KNOWN = 1.0


def build_fusion(cfg: Any, side: str, dictionary: Dictionary) -> tuple[Fusion, Side]:
    """Build the integration that a side's flags ask for.

    Args:
        cfg: fairseq's nested configuration with our flags; ``{side}_lm_config``, if set, describes an LM whose weights
            a checkpoint brings, and is set afterwards.
        side: ``"src"`` or ``"tgt"``.
        dictionary: of that side.

    Returns:
        The integration, and the description of its side.

    Raises:
        InputError: if the LM cannot be used on the side, or has another dictionary.
    """
    symbols = list(dictionary.symbols)
    return build_on(cfg, side, symbols, lambda lm, fingerprint: make_side(cfg, side, symbols, fingerprint))


def build_on(
    cfg: Any, side: str, symbols: list[str] | None, describe_side: Callable[[PretrainedLM, str], Side]
) -> tuple[Fusion, Side]:
    """Build the integration that a side's flags ask for, on a model of any kind.

    Args:
        cfg: the model's configuration; see :func:`build_fusion`.
        side: ``"src"`` or ``"tgt"``.
        symbols: of the side's dictionary, in index order; None: the side takes those of the LM.
        describe_side: function of the LM and its fingerprint that describes the side.

    Raises:
        InputError: if the LM cannot be used on the side, or has another dictionary.
    """
    kind, config = integration(cfg, side), integration_config(cfg, side)
    assert kind is not None
    stored: str | None = getattr(cfg, f"{side}_lm_config")
    overrides = kind.lm_overrides(config)
    lm = _described(stored, symbols or [], overrides) if stored else _load(cfg, side, overrides)
    reason = kind.refusal(type(lm))
    if reason is not None:
        raise InputError(f"--{side}-fusion {kind.name} cannot use a {lm.title}, which {reason}.")
    # Models without a choice of positions, such as recurrent ones, need none.
    undecided = side == "src" and kind.carries_positions and getattr(cfg, "src_positions", None) == AUTO
    if undecided and not stored and not lm.ordered:
        raise InputError(
            f"--src-lm is a {lm.title}, whose states do not tell the order of words: give --src-positions own, or none "
            f"for a bag of words (and to resume a training that began without)."
        )
    known = lm.serve(symbols or lm.symbols, what=f"the {SIDE_NAMES[side]} dictionary")
    if known < _ALL_KNOWN:
        logger.info(f"{SIDE_NAMES[side]} language model: it knows {known:.1%} of the dictionary's symbols")
    described = read_side(f"{side}_lm_config", stored) if stored else _description(lm, symbols or [])
    served = describe_side(lm, described.get("fingerprint") or "")
    fusion = kind(lm, served, config)
    trained = any(parameter.requires_grad for parameter in lm.parameters())
    if trained and not kind.trains_lm:
        raise InputError(
            f"the integration {kind.name} lets its language model be trained and does not say so: set trains_lm = True "
            f"in {kind.__module__}.{kind.__qualname__}, or leave the model frozen."
        )
    if not stored:
        setattr(cfg, f"{side}_lm_config", json.dumps({**described, "frozen": not trained}))
    origin = "a checkpoint of this model" if stored else getattr(cfg, f"{side}_lm")
    logger.info(f"{SIDE_NAMES[side]} language model: {_summary(lm)}, from {origin}")
    return fusion, served


def stack_config(cfg: Any, side: str) -> Any:
    """Return a copy of fairseq's nested configuration for one side's stack, which may be changed."""
    stack_cfg = copy.copy(cfg)
    setattr(stack_cfg, STACKS[side], copy.copy(getattr(cfg, STACKS[side])))
    stack_cfg.no_token_positional_embeddings = not has_positions(cfg, side)
    return stack_cfg


def prepare_starts(cfg: Any, task: Any) -> dict[str, tuple[Fusion, Any]]:
    """Build the integrations whose language models the stacks start from, and give both stacks their sizes.

    Args:
        cfg: fairseq's nested configuration of the model, in which sizes are changed.
        task: fairseq's, with the dictionaries of both sides.

    Returns:
        By side the integration and the configuration of its stack.
    """
    found = {}
    for side, dictionary in zip(SIDES, (task.source_dictionary, task.target_dictionary)):
        if starts_stack(cfg, side):
            fusion, _ = build_fusion(cfg, side, dictionary)
            own = stack_config(cfg, side)
            fusion.configure(own)
            setattr(cfg, STACKS[side], getattr(own, STACKS[side]))
            found[side] = fusion, own
    return found


def _described(stored: str, symbols: list[str], overrides: Any) -> PretrainedLM:
    return build(read_side("lm_config", stored)["lm"], symbols, **overrides).freeze()  # as load_lm does


def _load(cfg: Any, side: str, overrides: Any) -> PretrainedLM:
    path = getattr(cfg, f"{side}_lm")
    lm = load_lm(path, **overrides)
    if side == "tgt":
        _check_target(lm, path)
    return lm


def _description(lm: PretrainedLM, symbols: list[str]) -> dict[str, Any]:
    """Describe an LM that serves a side's symbols; whether it is frozen is known when its integration is built."""
    return {
        "lm": describe(lm, symbols),
        # For those who look into a checkpoint without the folder that a family or integration comes from.
        "states": lm.state_names,
        "title": lm.title,
        "dictionary_hash": lm.dictionary_hash,
        "fingerprint": state_fingerprint(lm),
    }


def _check_target(lm: PretrainedLM, path: str) -> None:
    if lm.sees_future:
        raise InputError(
            f"{path} is a {lm.title}, which sees the words to be predicted: the target side needs one that reads from "
            f"left to right, such as a causal LM (uni_transformer_lm)."
        )
    if not lm.incremental:
        raise InputError(f"{path} is a {lm.title}, which cannot continue a prefix, as a target side must.")
    if not lm.vocabulary.keeps_case:
        raise InputError(
            f"{path} turns capitals into small letters, which a target cannot get back: give a model that keeps case."
        )


def _summary(lm: PretrainedLM) -> str:
    """Describe an LM in a line: its tensors and parameters, and which of them are trained how."""
    tensors = list(lm.parameters())
    total = sum(tensor.numel() for tensor in tensors)
    trained = sum(tensor.numel() for tensor in tensors if tensor.requires_grad)
    text = f"{len(tensors)} tensors, {total:,} parameters, "
    text += "frozen" if not trained else "trained" if trained == total else f"{trained:,} of them trained"
    rate = next((found for tensor in tensors if (found := rate_of(tensor)) is not None), None)
    if trained and rate is not None and rate.scale != 1.0:
        text += f" with {rate.scale:g} times the learning rate"
    if trained and rate is not None and rate.frozen_updates:
        text += f", after the first {rate.frozen_updates:,} updates"
    return text
