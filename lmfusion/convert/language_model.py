"""Flags of the released format's language models as ours: from the training command, else from the weights."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from lmfusion.convert.arguments import CAUSAL, CLOZE, Arguments
from lmfusion.convert.mapping import FIRST_POSITION
from lmfusion.convert.released import count_layers, rows
from lmfusion.errors import InputError

Config = dict[str, Any]

# What the released code knows and lmfusion does not, with the value that means "not used".
UNSUPPORTED: dict[str, Any] = {
    "adaptive_input": False,
    "adaptive_softmax_cutoff": None,
    "tie_adaptive_weights": False,
    "character_embeddings": False,
    "segment_embeddings": False,
    "next_sentence_prediction": False,
    "output_dictionary_size": -1,
    "activation_fn": "relu",
}


def refuse_unsupported(args: Arguments) -> None:
    """Refuse what has no counterpart in lmfusion.

    Raises:
        InputError: naming every such flag.
    """
    found = [name for name, off in UNSUPPORTED.items() if args.get(name, off) not in (off, "", "None")]
    if found:
        values = ", ".join(f"{name}={args.get(name)!r}" for name in found)
        raise InputError(f"{args.origin} was trained with {values}, which lmfusion has no counterpart of.")


def family_of(weights: Mapping[str, Tensor], prefix: str) -> str | None:
    """Return which language model has its weights below a prefix that ends with a dot, if any."""
    for family, towers in ((CLOZE, "forward_layers."), (CAUSAL, "layers.")):
        if any(name.startswith(prefix + towers) for name in weights):
            return family
    return None


def lm_config(args: Arguments, weights: Mapping[str, Tensor], prefix: str, family: str, *, limit: int) -> Config:
    """Return our flags of a language model: from its training command where known, else from its weights.

    Args:
        args: of its training.
        weights: of the whole checkpoint.
        prefix: of the language model's weights, with the final dot.
        family: ``"bi_transformer_lm"`` or ``"uni_transformer_lm"``.
        limit: longest sentence, where the flags know none.

    Raises:
        InputError: if a flag is needed that is in neither, or there is no counterpart of one.
    """
    refuse_unsupported(args)
    args.require(*_unseen(args, weights, prefix))
    sizes = sizes_seen(weights, prefix, family)
    tokens_per_sample = args.integer("tokens_per_sample", limit)
    config: Config = {
        "decoder_embed_dim": args.integer("decoder_embed_dim", sizes["decoder_embed_dim"]),
        "decoder_ffn_embed_dim": args.integer("decoder_ffn_embed_dim", sizes["decoder_ffn_embed_dim"]),
        "decoder_layers": args.integer("decoder_layers", sizes["decoder_layers"], most=len(weights) + 1),
        "decoder_attention_heads": args.integer("decoder_attention_heads"),
        "dropout": args.dropout("dropout", 0.1),
        "attention_dropout": args.dropout("attention_dropout", 0.0),
        "activation_dropout": args.dropout("relu_dropout", 0.0),
        "input_dropout": args.dropout("input_dropout", 0.0),
        "share_decoder_input_output_embed": args.switch("share_decoder_input_output_embed"),
        "no_token_positional_embeddings": args.switch("no_token_positional_embeddings")
        or (family == CAUSAL and args.switch("no_dec_token_positional_embeddings")),
        "decoder_learned_pos": args.switch("decoder_learned_pos", f"{prefix}embed_positions.weight" in weights),
        "cpu_bf16": False,
        "tokens_per_sample": tokens_per_sample,
        "max_target_positions": args.integer("max_target_positions", tokens_per_sample),
    }
    if config["decoder_learned_pos"] and not config["no_token_positional_embeddings"]:
        config["max_target_positions"] = _learned_limit(weights, prefix, config["max_target_positions"])
    if family == CLOZE:
        config.update(_cloze_config(args, weights, prefix))
    check_heads(config, "decoder", args, 2 if config.get("double_final_heads") else 1)
    return config


def _learned_limit(weights: Mapping[str, Tensor], prefix: str, limit: int) -> int:
    """Return the longest sentence that a table of positions holds; ``limit`` stands for a table that is missing."""
    table = rows(weights, f"{prefix}embed_positions.weight") - FIRST_POSITION
    return (table if table > 2 else limit) - 2  # a cloze sample is two longer than fairseq counts


def sizes_seen(weights: Mapping[str, Tensor], prefix: str, family: str) -> dict[str, int]:
    """Return the sizes of a language model that its weights tell; 0 where the weight that tells it is missing."""
    towers = prefix + ("forward_layers." if family == CLOZE else "layers.")
    return {
        "decoder_embed_dim": rows(weights, f"{towers}0.self_attn.out_proj.weight"),
        "decoder_ffn_embed_dim": rows(weights, f"{towers}0.fc1.weight"),
        "decoder_layers": count_layers(weights, towers),
    }


def check_heads(config: Config, part: str, args: Arguments, factor: int = 1) -> None:
    """Refuse heads that cannot be those of the model.

    Raises:
        InputError: if they do not divide its channels.
    """
    size, heads = config[f"{part}_embed_dim"], config[f"{part}_attention_heads"] * factor
    if size % heads:
        raise InputError(
            f"{args.origin}: {heads} attention heads ({part}_attention_heads) do not divide {size} channels."
        )


def _unseen(args: Arguments, weights: Mapping[str, Tensor], prefix: str) -> list[str]:
    """Return the flags that the weights do not tell; what a training command does not say had its default."""
    names = ["decoder_attention_heads"]
    if not args.complete and any(name.startswith(f"{prefix}full_attn_layer.") for name in weights):
        names.append("double_final_heads")
    # The released code saves one of these with every model that has positions; without one they may only be lost.
    traces = [f"{prefix}embed_positions.{name}" for name in ("weight", "weights", "_float_tensor")]
    if not args.complete and not any(name in weights for name in traces):
        names.append("no_token_positional_embeddings")
    return names


def _cloze_config(args: Arguments, weights: Mapping[str, Tensor], prefix: str) -> Config:
    linear_join = args.switch("linear_final_layer", f"{prefix}full_linear_layer.weight" in weights)
    targets = _targets(args, weights, prefix)
    attention = "self" in targets and not linear_join
    concatenated = f"{prefix}full_attn_layer.self_attn.q_proj.weight" in weights
    return {
        "no_bias_kv": args.switch("no_bias_kv", f"{prefix}forward_layers.0.self_attn.bias_k" not in weights),
        "no_extra_kv": False,
        "single_tower": args.switch("single_tower", _towers_are_one(weights, prefix)),
        "linear_final_layer": linear_join,
        "linear_final_layer_bias": linear_join
        and args.switch("linear_final_layer_bias", f"{prefix}full_linear_layer.bias" in weights),
        "double_final_heads": attention and args.switch("double_final_heads"),
        "concat_final_q": attention and args.switch("concat_final_q", concatenated),
        "targets": targets,
    }


def _towers_are_one(weights: Mapping[str, Tensor], prefix: str) -> bool:
    """Return whether both towers have the same weights: the released code saves a shared one under both names."""
    backward = {name[len(prefix) :] for name in weights if name.startswith(f"{prefix}backward_layers.")}
    pairs = [(prefix + name, prefix + name.replace("backward_", "forward_", 1)) for name in backward]
    return all(other in weights and torch.equal(weights[name], weights[other]) for name, other in pairs)


def _targets(args: Arguments, weights: Mapping[str, Tensor], prefix: str) -> list[str]:
    if not args.complete:
        joined = any(name.startswith(f"{prefix}full_") for name in weights)
        return ["self"] if joined else ["future", "past"]
    chosen = {
        "self": args.switch("self_target", not args.switch("exclude_self_target")),
        "future": args.switch("future_target"),
        "past": args.switch("past_target"),
    }
    return [name for name, is_chosen in chosen.items() if is_chosen]
