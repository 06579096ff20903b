"""Random checkpoints in the released format: the names and shapes that the released code saves a model under."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

Weights = dict[str, Tensor]
Args = dict[str, Any]
PAD = 1
CLOZE: Args = {
    "arch": "bi_transformer_lm_big", "task": "language_modeling", "self_target": True, "future_target": False,
    "past_target": False, "decoder_embed_dim": 16, "decoder_ffn_embed_dim": 20, "decoder_layers": 2,
    "decoder_attention_heads": 2, "decoder_learned_pos": False, "share_decoder_input_output_embed": False,
    "no_token_positional_embeddings": False, "linear_final_layer": False, "linear_final_layer_bias": False,
    "no_bias_kv": False, "double_final_heads": False, "concat_final_q": False, "single_tower": False,
    "dropout": 0.1, "attention_dropout": 0.1, "relu_dropout": 0.05, "tokens_per_sample": 30, "max_target_positions": 30,
    "adaptive_input": False, "adaptive_softmax_cutoff": None, "character_embeddings": False,
}  # fmt: skip
CAUSAL: Args = {
    "arch": "transformer_lm_big", "task": "language_modeling", "self_target": False, "decoder_embed_dim": 16,
    "decoder_input_dim": 16, "decoder_output_dim": 16, "decoder_ffn_embed_dim": 20, "decoder_layers": 2,
    "decoder_attention_heads": 2, "decoder_learned_pos": False, "share_decoder_input_output_embed": False,
    "no_dec_token_positional_embeddings": False, "dropout": 0.1, "attention_dropout": 0.1, "relu_dropout": 0.05,
    "tokens_per_sample": 30, "max_target_positions": 30, "adaptive_softmax_cutoff": None,
}  # fmt: skip
SEQ2SEQ: Args = {
    "arch": "transformer_wmt_en_de", "task": "translation", "source_lang": "en", "target_lang": "de",
    "left_pad_source": "False", "left_pad_target": "False",
    **{f"{part}_{name}": value for part in ("encoder", "decoder") for name, value in {
        "embed_dim": 12, "ffn_embed_dim": 20, "layers": 2, "attention_heads": 3, "normalize_before": False,
        "learned_pos": False, "embed_path": None, "embed_scale": None}.items()},
    "decoder_output_dim": 12, "no_enc_token_positional_embeddings": False, "no_dec_token_positional_embeddings": False,
    "share_decoder_input_output_embed": False, "share_all_embeddings": False, "embedding_only": False,
    "elmo_affine": False, "elmo_dropout": 0.2, "bilm_add_bos": False, "bilm_mask_last_state": False,
    "bilm_model_dropout": 0.3, "bilm_attention_dropout": 0.2, "bilm_relu_dropout": 0.1,
    "max_source_positions": 40, "max_target_positions": 40, "adaptive_softmax_cutoff": None,
    "dropout": 0.1, "attention_dropout": 0.1, "relu_dropout": 0.0,
}  # fmt: skip


def linear(name: str, rows: int, columns: int, bias: bool = True) -> Weights:
    weights = {f"{name}.weight": torch.randn(rows, columns) * columns**-0.5}
    return {**weights, **({f"{name}.bias": torch.randn(rows) * 0.2} if bias else {})}


def norm(name: str, size: int) -> Weights:
    return {f"{name}.weight": 1 + torch.randn(size) * 0.2, f"{name}.bias": torch.randn(size) * 0.2}


def attention(name: str, size: int, rows: int = 3) -> Weights:
    projected = linear(f"{name}.in_proj", rows * size, size)
    renamed = {key.replace("in_proj.", "in_proj_"): value for key, value in projected.items()}
    return {**renamed, **linear(f"{name}.out_proj", size, size)}


def embedding(name: str, rows: int, size: int) -> Weights:
    table = torch.randn(rows, size) * size**-0.5
    table[PAD] = 0
    return {name: table}


def positions(name: str, args: Args, none: str, learned: str, limit: int, size: int) -> Weights:
    if args.get(none):
        return {}
    if args.get(learned):
        return embedding(f"{name}embed_positions.weight", limit + PAD + 1, size)
    return {f"{name}embed_positions._float_tensor": torch.zeros(1)}


def block(name: str, args: Args, extra: bool) -> Weights:
    size, inner = args["decoder_embed_dim"], args["decoder_ffn_embed_dim"]
    weights = attention(f"{name}self_attn", size)
    if extra:
        weights.update({f"{name}self_attn.bias_{kind}": torch.randn(1, 1, size) for kind in "kv"})
    weights.update(norm(f"{name}self_attn_layer_norm", size))
    return {**weights, **feed_forward(name, size, inner)}


def feed_forward(name: str, size: int, inner: int) -> Weights:
    inside = {**linear(f"{name}fc1", inner, size), **linear(f"{name}fc2", size, inner)}
    return {**inside, **norm(f"{name}final_layer_norm", size)}


def language_model(args: Args, vocabulary: int, prefix: str = "decoder.", *, softmax: bool = True) -> Weights:
    """Weights of a cloze or causal language model."""
    size, cloze = args["decoder_embed_dim"], args["arch"].startswith("bi_")
    inside, outside = args.get("decoder_input_dim", size), args.get("decoder_output_dim", size)
    weights = embedding(f"{prefix}embed_tokens.weight", vocabulary, inside)
    if softmax and not args.get("share_decoder_input_output_embed"):
        weights[f"{prefix}embed_out"] = torch.randn(vocabulary, outside) * outside**-0.5
    if inside != size:
        weights.update(linear(f"{prefix}project_in_dim", size, inside, bias=False))
    if outside != size:
        weights.update(linear(f"{prefix}project_out_dim", outside, size, bias=False))
    none = "no_token_positional_embeddings" if cloze else "no_dec_token_positional_embeddings"
    weights.update(positions(prefix, args, none, "decoder_learned_pos", args["max_target_positions"], size))
    if not cloze:
        weights[f"{prefix}version"] = torch.tensor([2.0])
    for tower in ("forward_layers", "backward_layers") if cloze else ("layers",):
        for number in range(args["decoder_layers"]):
            weights.update(block(f"{prefix}{tower}.{number}.", args, cloze and not args["no_bias_kv"]))
    if args.get("single_tower"):  # one module under two names
        shared = {name: value for name, value in weights.items() if "forward_layers" in name}
        weights.update({name.replace("forward_", "backward_"): value for name, value in shared.items()})
    return {**weights, **(join(args, prefix) if cloze and args["self_target"] else {})}


def join(args: Args, prefix: str) -> Weights:
    size = args["decoder_embed_dim"]
    if args["linear_final_layer"]:
        return linear(f"{prefix}full_linear_layer", size, 2 * size, args["linear_final_layer_bias"])
    name = f"{prefix}full_attn_layer."
    weights = attention(f"{name}self_attn", size, rows=2 if args["concat_final_q"] else 3)
    if args["concat_final_q"]:
        weights.update(linear(f"{name}self_attn.q_proj", size, 2 * size))
    weights.update({**norm(f"{name}fwd_layer_norm", size), **norm(f"{name}bwd_layer_norm", size)})
    return {**weights, **feed_forward(name, size, args["decoder_ffn_embed_dim"])}


def states_of(lm: Args, *, encoder: bool) -> tuple[int, int]:
    """How many states the released code mixes, and their channels."""
    size, layers = lm["decoder_embed_dim"], lm["decoder_layers"]
    if not lm["arch"].startswith("bi_"):
        return layers + 1, size
    return (layers + 2 + int(lm["self_target"]), 2 * size) if encoder else (2 * layers + 1, size)


def side(part: str, args: Args, lm: Args | None, vocabulary: int) -> Weights:
    """Embeddings of a side, or its language model."""
    size, encoder = args[f"{part}_embed_dim"], part == "encoder"
    base = f"{part}.embedder." if encoder and args["embedding_only"] else f"{part}.embed_tokens."
    if lm is None:
        return embedding(f"{base}weight", vocabulary, size)
    mixed = str(args[f"{part}_embed_path"]).startswith("elmo:")
    name = "language_model" if mixed else "bilm" if encoder else "lm"
    weights = language_model(lm, vocabulary, f"{base}{name}.decoder.", softmax=False)
    count, inside = states_of(lm, encoder=encoder) if mixed else (0, lm["decoder_embed_dim"])
    if mixed:
        weights.update({f"{base}weights": torch.randn(count), f"{base}gamma": torch.tensor([1.3])})
        weights.update(norm(f"{base}layer_norm", inside) if args["elmo_affine"] else {})
    if inside != size:
        weights.update(linear(f"{base}{'projection' if mixed else 'proj'}", size, inside, bias=False))
    return weights


def stack(part: str, args: Args) -> Iterator[Weights]:
    size, inner = args[f"{part}_embed_dim"], args[f"{part}_ffn_embed_dim"]
    yield {f"{part}.version": torch.tensor([2.0])}
    for name in (f"{part}.layers.{number}." for number in range(args[f"{part}_layers"])):
        yield attention(f"{name}self_attn", size)
        if part == "decoder":
            yield {**attention(f"{name}encoder_attn", size), **norm(f"{name}self_attn_layer_norm", size)}
            yield {**norm(f"{name}encoder_attn_layer_norm", size), **feed_forward(name, size, inner)}
        else:
            yield {**linear(f"{name}fc1", inner, size), **linear(f"{name}fc2", size, inner)}
            yield {**norm(f"{name}layer_norms.0", size), **norm(f"{name}layer_norms.1", size)}
    if args[f"{part}_normalize_before"]:
        yield norm(f"{part}.layer_norm", size)
    limit = args["max_source_positions" if part == "encoder" else "max_target_positions"]
    yield positions(f"{part}.", args, f"no_{part[:3]}_token_positional_embeddings", f"{part}_learned_pos", limit, size)


def seq2seq(args: Args, lms: dict[str, Args], vocabulary: dict[str, int]) -> Weights:
    """Weights of an encoder and a decoder, on language models or not."""
    weights: Weights = {}
    for name, part in (("src", "encoder"), ("tgt", "decoder")):
        weights.update(side(part, args, lms.get(name), vocabulary[name]))
        if not (part == "encoder" and args["embedding_only"]):
            for some in stack(part, args):
                weights.update(some)
    size, outside = args["decoder_embed_dim"], args["decoder_output_dim"]
    if outside != size:
        weights.update(linear("decoder.project_out_dim", outside, size, bias=False))
    if args["share_all_embeddings"]:
        name = "embedder" if args["embedding_only"] else "embed_tokens"
        weights["decoder.embed_tokens.weight"] = weights[f"encoder.{name}.weight"]
    elif not args["share_decoder_input_output_embed"]:
        weights["decoder.embed_out"] = torch.randn(vocabulary["tgt"], outside) * outside**-0.5
    return weights
