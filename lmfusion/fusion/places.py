"""Replace the attention modules of a fairseq stack, each at its place."""

from __future__ import annotations

from typing import Any

from torch import nn

from lmfusion.fusion.interface import Fusion, Place

_KINDS = {"self": "self_attn", "cross": "encoder_attn"}


def layers_of(stack: Any) -> list[nn.Module]:
    """Return all layers of fairseq's encoder or decoder; iterating its lists of LayerDrop leaves some out at random."""
    return [stack.layers[number] for number in range(len(stack.layers))]


def wrap_attention(fusion: Fusion, stack: nn.Module, name: str) -> None:
    """Replace a stack's attention modules by those that an integration returns for them.

    Args:
        fusion: the integration; its ``attention`` is called for every place.
        stack: fairseq's encoder or decoder.
        name: ``"encoder"`` or ``"decoder"``.
    """
    for number, layer in enumerate(layers_of(stack)):
        for kind, attribute in _KINDS.items():
            own = getattr(layer, attribute, None)
            if own is not None:
                setattr(layer, attribute, fusion.attention(own, Place(name, number, kind)))
