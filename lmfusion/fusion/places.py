"""Replace the attention modules of a fairseq stack, each at its place."""

from __future__ import annotations

from typing import Any

from torch import nn

from lmfusion.fusion.interface import Fusion, Place

_KINDS = {"self": "self_attn", "cross": "encoder_attn"}


def wrap_attention(fusion: Fusion, stack: nn.Module, name: str) -> None:
    """Replace a stack's attention modules by those that an integration returns for them.

    Args:
        fusion: the integration; its ``attention`` is called for every place.
        stack: fairseq's encoder or decoder.
        name: ``"encoder"`` or ``"decoder"``.
    """
    layers: Any = stack.layers
    for number in range(len(layers)):  # by number: fairseq's list with LayerDrop, iterated, leaves layers out
        layer = layers[number]
        for kind, attribute in _KINDS.items():
            own = getattr(layer, attribute, None)
            if own is not None:
                setattr(layer, attribute, fusion.attention(own, Place(name, number, kind)))
