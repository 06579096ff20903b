"""Where the weights of the released format's encoder and decoder go: into fairseq's of today."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from torch import Tensor

from lmfusion.convert.language_model import FIRST_POSITION
from lmfusion.convert.plan import Move, layer_norm, linear, move, split

Config = dict[str, Any]
# The released encoder, and older decoders, number their layer norms.
NORMS = {
    "encoder": ("self_attn_layer_norm", "final_layer_norm"),
    "decoder": ("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm"),
}


def stack_moves(part: str, config: Config, weights: Mapping[str, Tensor], *, positions: bool) -> list[Move]:
    """Moves of an encoder or decoder without its embeddings.

    Args:
        part: ``"encoder"`` or ``"decoder"``.
        config: our flags.
        weights: in the released format.
        positions: whether it has position embeddings.
    """
    size = config[f"{part}_embed_dim"]
    moves = list(_blocks(part, config, weights))
    if positions and config[f"{part}_learned_pos"]:
        limit = config["max_source_positions" if part == "encoder" else "max_target_positions"]
        name = f"{part}.embed_positions.weight"
        moves.append(move(name, name, limit + FIRST_POSITION, size))
    if has_final_norm(part, config, weights):
        moves += layer_norm(f"{part}.layer_norm", f"{part}.layer_norm", size)
    return moves


def has_final_norm(part: str, config: Config, weights: Mapping[str, Tensor]) -> bool:
    """Whether the last block is followed by a layer norm: with pre-norm, but not in the first version of fairseq."""
    version = weights.get(f"{part}.version")
    if version is not None and version.numel():
        is_first = float(version.flatten()[0]) < 2
    else:
        is_first = f"{part}.layer_norm.weight" not in weights
    return bool(config[f"{part}_normalize_before"]) and not is_first


def stack_ignored(part: str) -> list[str]:
    """Names that are no weights."""
    return [f"{part}.{name}" for name in ("version", "embed_positions._float_tensor", "embed_positions.weights")]


def _blocks(part: str, config: Config, weights: Mapping[str, Tensor]) -> Iterator[Move]:
    size, inner = config[f"{part}_embed_dim"], config[f"{part}_ffn_embed_dim"]
    attentions = ("self_attn",) if part == "encoder" else ("self_attn", "encoder_attn")
    for number in range(config[f"{part}_layers"]):
        block = f"{part}.layers.{number}."
        for attention in attentions:
            yield from _attention(f"{block}{attention}.", size)
        for index, norm in enumerate(NORMS[part]):
            numbered = f"{block}layer_norms.{index}"
            source = numbered if f"{numbered}.weight" in weights else f"{block}{norm}"
            yield from layer_norm(source, f"{block}{norm}", size)
        yield from linear(f"{block}fc1", f"{block}fc1", inner, size)
        yield from linear(f"{block}fc2", f"{block}fc2", size, inner)


def _attention(prefix: str, size: int) -> Iterator[Move]:
    for kind, shape in (("weight", (3 * size, size)), ("bias", (3 * size,))):
        parts = [(f"{prefix}{name}_proj.{kind}", size) for name in "qkv"]
        yield split(f"{prefix}in_proj_{kind}", parts, *shape)
    yield from linear(f"{prefix}out_proj", f"{prefix}out_proj", size, size)
