"""Where the weights of the released format's language models go."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lmfusion.convert.language_model import FIRST_POSITION
from lmfusion.convert.plan import Move, copy_of, flattened, layer_norm, linear, move, split

Config = dict[str, Any]


def lm_moves(config: Config, vocabulary: int, prefix: str, to: str, *, softmax: bool) -> list[Move]:
    """Moves of a whole language model.

    Args:
        config: our flags; with ``targets`` it is a cloze LM (or a pair), without a causal one.
        vocabulary: number of symbols.
        prefix: of the weights in the released format.
        to: prefix of ours.
        softmax: whether an output embedding belongs to it (inside a sequence-to-sequence model there is none).
    """
    size = config["decoder_embed_dim"]
    moves = [move(f"{prefix}embed_tokens.weight", f"{to}embed.tokens.weight", vocabulary, size)]
    if softmax and not config["share_decoder_input_output_embed"]:
        moves.append(move(f"{prefix}embed_out", f"{to}output_weight", vocabulary, size))
    if config["decoder_learned_pos"] and not config["no_token_positional_embeddings"]:
        moves.append(_positions(config, prefix, to))
    if "targets" in config:
        moves += _towers(config, prefix, to)
        moves += _join(config, prefix, to)
    else:
        moves += _tower(config, f"{prefix}layers.", f"{to}layers.", bias_kv=False)
    return moves


def lm_ignored(prefix: str) -> list[str]:
    """Names that are no weights: versions, and traces of sinusoidal positions."""
    return [f"{prefix}{name}" for name in ("version", "embed_positions._float_tensor", "embed_positions.weights")]


def _positions(config: Config, prefix: str, to: str) -> Move:
    rows = config["max_target_positions"] + 2
    return Move(
        f"{prefix}embed_positions.weight",
        (FIRST_POSITION + rows, config["decoder_embed_dim"]),
        lambda table: {f"{to}embed.learned_positions.weight": table[FIRST_POSITION:]},
    )


def _towers(config: Config, prefix: str, to: str) -> Iterator[Move]:
    bias_kv = not config["no_bias_kv"]
    forward, backward = (
        list(_tower(config, f"{prefix}{name}_layers.", f"{to}{name}_layers.", bias_kv=bias_kv))
        for name in ("forward", "backward")
    )
    yield from forward
    for one, other in zip(forward, backward):
        yield copy_of(other.source, one.source, *other.shape) if config["single_tower"] else other


def _tower(config: Config, prefix: str, to: str, *, bias_kv: bool) -> Iterator[Move]:
    size, inner = config["decoder_embed_dim"], config["decoder_ffn_embed_dim"]
    for number in range(config["decoder_layers"]):
        old, new = f"{prefix}{number}.", f"{to}{number}."
        yield move(f"{old}self_attn.in_proj_weight", f"{new}self_attn.in_proj.weight", 3 * size, size)
        yield move(f"{old}self_attn.in_proj_bias", f"{new}self_attn.in_proj.bias", 3 * size)
        for name in ("bias_k", "bias_v") if bias_kv else ():
            yield flattened(f"{old}self_attn.{name}", f"{new}self_attn.{name}", size)
        yield from linear(f"{old}self_attn.out_proj", f"{new}self_attn.out_proj", size, size)
        yield from layer_norm(f"{old}self_attn_layer_norm", f"{new}layer_norm", size)
        yield from _feed_forward(old, f"{new}ffn.", size, inner)


def _feed_forward(old: str, new: str, size: int, inner: int) -> Iterator[Move]:
    yield from layer_norm(f"{old}final_layer_norm", f"{new}layer_norm", size)
    yield from linear(f"{old}fc1", f"{new}fc1", inner, size)
    yield from linear(f"{old}fc2", f"{new}fc2", size, inner)


def _join(config: Config, prefix: str, to: str) -> Iterator[Move]:
    size = config["decoder_embed_dim"]
    if "self" not in config["targets"]:
        return
    if config["linear_final_layer"]:
        bias = config["linear_final_layer_bias"]
        yield from linear(f"{prefix}full_linear_layer", f"{to}join.proj", size, 2 * size, bias=bias)
        return
    old, new = f"{prefix}full_attn_layer.", f"{to}join."
    for tower in ("fwd", "bwd"):
        yield from layer_norm(f"{old}{tower}_layer_norm", f"{new}{tower}_layer_norm", size)
    if config["concat_final_q"]:
        yield from linear(f"{old}self_attn.q_proj", f"{new}q_proj", size, 2 * size)
        yield move(f"{old}self_attn.in_proj_weight", f"{new}kv_proj.weight", 2 * size, size)
        yield move(f"{old}self_attn.in_proj_bias", f"{new}kv_proj.bias", 2 * size)
    else:
        for kind, shape in (("weight", (3 * size, size)), ("bias", (3 * size,))):
            parts = [(f"{new}q_proj.{kind}", size), (f"{new}kv_proj.{kind}", 2 * size)]
            yield split(f"{old}self_attn.in_proj_{kind}", parts, *shape)
    yield from linear(f"{old}self_attn.out_proj", f"{new}out_proj", size, size)
    yield from _feed_forward(old, f"{new}ffn.", size, config["decoder_ffn_embed_dim"])
