"""Which of a language model's states an ELMo mix of the released code is made of: its weights tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import Tensor

from lmfusion.convert.variant import StateList
from lmfusion.errors import InputError


def state_list(config: dict[str, Any], weights: Mapping[str, Tensor], base: str, output_dim: int) -> StateList | None:
    """The states mixed.

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
    size, count = config["decoder_embed_dim"], weights[f"{base}weights"].numel()
    mixed = _channels(weights, base, output_dim)
    if "targets" not in config and (mixed, count) == (size, 1 + config["decoder_layers"]):
        return None
    has_join = "self" in config.get("targets", [])
    for states in _candidates(has_join) if "targets" in config else ():
        if mixed == size * (2 if states.paired else 1) and count == len(states.names(config["decoder_layers"])):
            is_ours = states == StateList(paired=True, context=has_join, joined=has_join)
            return None if is_ours else states
    raise InputError(
        f"{base}weights has shares for {count} states of {mixed} channels, and a language model of "
        f"{config['decoder_layers']} layers and {size} channels has no such list of states."
    )


def _candidates(has_join: bool) -> list[StateList]:
    paired = [(True, True)] if has_join else [(False, False), (True, False)]
    single = [(False, False), (False, True), (True, False), (True, True)] if has_join else paired
    return [StateList(True, *rest) for rest in paired] + [StateList(False, *rest) for rest in single]


def _channels(weights: Mapping[str, Tensor], base: str, output_dim: int) -> int:
    """C' of the states: of what they are normalized or projected from; without either it is the model's own."""
    projection, norm = weights.get(f"{base}projection.weight"), weights.get(f"{base}layer_norm.weight")
    if projection is not None and projection.dim() == 2:
        return projection.size(1)
    return norm.numel() if norm is not None else output_dim
