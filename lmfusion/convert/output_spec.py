"""Which states of a language model the released code uses: all of them mixed (``elmo:``) or the top (``bilm:``)."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmfusion.convert.arguments import Arguments
from lmfusion.convert.variant import FORWARD, HIDES_SELF, SEES_SELF, StateList
from lmfusion.errors import InputError

logger = logging.getLogger(__name__)


def top_state(side: str, config: dict[str, Any], args: Arguments) -> str:
    """Return which state the released code takes as the output of a language model that is fine-tuned.

    Args:
        side: ``"src"`` or ``"tgt"``.
        config: our flags of the language model.
        args: of the sequence-to-sequence model.

    Raises:
        InputError: if its flag has none of its values.
    """
    if "targets" not in config:
        return SEES_SELF
    if "self" not in config["targets"]:
        return FORWARD
    # In the decoder it has no way to show a cloze LM the token itself.
    return HIDES_SELF if side == "tgt" or _hides_the_token(args) else SEES_SELF


def _hides_the_token(args: Arguments) -> bool:
    """Return whether the top of a cloze LM in the encoder hides the token itself, as in the LM's training.

    The released code does so for ``bilm_mask_last_state="full"`` alone, which its flag (True or False) cannot say.
    From 9 to 18 December 2018 True did; a file does not tell when it was written.

    Raises:
        InputError: if it is none of these three values.
    """
    if args.get("bilm_mask_last_state") == "full":
        return True
    if args.switch("bilm_mask_last_state"):
        logger.warning(
            f"{args.origin} has bilm_mask_last_state=True, which hides nothing since 18 December 2018. If it was "
            f"trained by the code of the nine days before, convert it with {args.flag} bilm_mask_last_state=full."
        )
    return False


def mixed_states(config: dict[str, Any], weights: Mapping[str, Tensor], base: str, output_dim: int) -> StateList | None:
    """Return which states an ELMo mix of the released code is made of, as its weights tell.

    Args:
        config: our flags of the language model.
        weights: of the whole checkpoint.
        base: prefix of the embedding's weights.
        output_dim: channels of the encoder or decoder.

    Returns:
        None for what lmfusion mixes by itself: all states, those of two towers paired.

    Raises:
        InputError: if the number of shares or their size is that of no list.
    """
    size, layers, count = config["decoder_embed_dim"], config["decoder_layers"], weights[f"{base}weights"].numel()
    channels, targets = _channels(weights, base, output_dim), config.get("targets")
    if targets is None and (channels, count) == (size, 1 + layers):
        return None
    has_join = "self" in (targets or [])
    usual = StateList(paired=True, context=has_join, joined=has_join)
    for states in _state_lists(has_join) if targets is not None else ():
        if (channels, count) == (size * (2 if states.paired else 1), len(states.names(layers))):
            return None if states == usual else states
    raise InputError(
        f"{base}weights has shares for {count} states of {channels} channels, and a language model of {layers} layers "
        f"and {size} channels has no such list of states."
    )


def _state_lists(has_join: bool) -> list[StateList]:
    """Return the lists that versions of the released code mix."""
    without_join = [(False, False), (True, False)]
    paired = [(True, True)] if has_join else without_join
    single = [(False, False), (False, True), (True, False), (True, True)] if has_join else without_join
    return [StateList(True, *rest) for rest in paired] + [StateList(False, *rest) for rest in single]


def _channels(weights: Mapping[str, Tensor], base: str, output_dim: int) -> int:
    """Return C' of the states: of what they are normalized or projected from; without either it is the model's own."""
    projection, norm = weights.get(f"{base}projection.weight"), weights.get(f"{base}layer_norm.weight")
    if projection is not None and projection.dim() == 2:
        return projection.size(1)
    return norm.numel() if norm is not None else output_dim
