"""A language model's transformer layers in the terms of fairseq's encoder and decoder, which can start from them."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

Weights = dict[str, Tensor]


@dataclass(frozen=True)
class Stack:
    """Sizes, kind and weights of a stack of transformer layers.

    Attributes:
        embed_dim: C.
        ffn_dim: inner size of the feed-forward sub-blocks.
        heads: H.
        tokens: word embeddings by the language model's ids, V x C.
        layers: weights of each layer by fairseq's names, lowest first.
        output: output embeddings, V x C; None: the word embeddings.
        positions: learned positions, P x C, the first token's in front; None: fairseq's sinusoids, or none.
        has_positions: False if there are none of either kind.
        normalize_before: True if layer norms stand before the sub-blocks.
        activation: fairseq's name of the function between the feed-forward layers.
        scale_embedding: True if word embeddings are multiplied by sqrt(C).
        embedding_norm: weights of a layer norm over the embeddings, ``weight`` and ``bias``; empty: there is none.
        final_norm: weights of a layer norm behind the last layer; empty: there is none.
        zero_attention: True if every self-attention has a key and a value of zeros besides those of the words.
        epsilon: of all layer norms.
    """

    embed_dim: int
    ffn_dim: int
    heads: int
    tokens: Tensor
    layers: list[Weights]
    output: Tensor | None = None
    positions: Tensor | None = None
    has_positions: bool = True
    normalize_before: bool = True
    activation: str = "relu"
    scale_embedding: bool = True
    embedding_norm: Weights = field(default_factory=dict)
    final_norm: Weights = field(default_factory=dict)
    zero_attention: bool = False
    epsilon: float = 1e-5


def split_projection(weights: Weights, name: str = "self_attn") -> Weights:
    """Return queries', keys' and values' projections by fairseq's names from one matrix of all three.

    Args:
        weights: ``weight`` (3C x C) and ``bias`` (3C).
        name: of the attention module.
    """
    return {
        f"{name}.{letter}_proj.{kind}": part
        for kind in ("weight", "bias")
        for letter, part in zip("qkv", weights[kind].chunk(3))
    }


def under(name: str, weights: Weights) -> Weights:
    """Return weights with the name of a module put in front of theirs."""
    return {f"{name}.{key}": weight for key, weight in weights.items()}
