"""What an integration is told of the side that it serves and of a place in the model."""

from __future__ import annotations

from dataclasses import dataclass

ENCODER, DECODER = "encoder", "decoder"


@dataclass(frozen=True)
class Side:
    """The properties of a side that an integration may depend on.

    Attributes:
        prefix: of its flags, ``"src"`` or ``"tgt"``.
        name: for messages, ``"source"`` or ``"target"``.
        stack: ``"encoder"`` or ``"decoder"``.
        symbols: of its dictionary, in index order.
        width: C, channels of its embeddings.
        heads: of its attention.
        fingerprint: of the language model's weights as pretrained.
    """

    prefix: str
    name: str
    stack: str
    symbols: list[str]
    width: int
    heads: int
    fingerprint: str = ""


@dataclass(frozen=True)
class Place:
    """The place of an attention module in a model.

    Attributes:
        stack: ``"encoder"`` or ``"decoder"``.
        layer: its number, from 0.
        kind: ``"self"`` or ``"cross"``.
    """

    stack: str
    layer: int
    kind: str
