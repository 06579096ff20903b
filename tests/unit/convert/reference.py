"""The released models, written down once more in plain float64 from what the paper and SPEC sections 1 and 2 say.

Works on the released format's own names, on one sentence without padding; shares nothing with the package. That it
is the released code's arithmetic is tested on the numbers which that code itself gave.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

Weights = dict[str, Tensor]
Args = dict[str, Any]
EOS, PAD = 2, 1


def double(weights: Weights) -> Weights:
    return {name: value.double() for name, value in weights.items()}


def linear(w: Weights, name: str, x: Tensor) -> Tensor:
    y = x @ w[f"{name}.weight"].T
    return y + w[f"{name}.bias"] if f"{name}.bias" in w else y


def norm(w: Weights, name: str, x: Tensor) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    x = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return x * w[f"{name}.weight"] + w[f"{name}.bias"] if f"{name}.weight" in w else x


def attention(
    w: Weights, name: str, query: Tensor, keys: Tensor, heads: int, sees: Tensor, *, scale: bool, extra: str = ""
) -> Tensor:
    """Queries (T x C, projected here unless they are 2C wide) over keys (S x C); ``sees`` is T x S."""
    weight, bias, size = w[f"{name}.in_proj_weight"], w[f"{name}.in_proj_bias"], keys.size(1)
    rest = slice(None) if f"{name}.q_proj.weight" in w else slice(size, None)
    q = linear(w, f"{name}.q_proj", query) if f"{name}.q_proj.weight" in w else query @ weight[:size].T + bias[:size]
    k, v = (keys @ weight[rest].T + bias[rest]).split(size, dim=1)
    if extra:
        nothing = torch.zeros(1, size).double()
        k = torch.cat([k, w[f"{name}.bias_k"].view(1, size) if extra == "learned" else nothing])
        v = torch.cat([v, w[f"{name}.bias_v"].view(1, size) if extra == "learned" else nothing])
        sees = torch.cat([sees, torch.ones(len(sees), 1, dtype=torch.bool)], dim=1)
    out = []
    for part in torch.arange(size).chunk(heads):
        logits = q[:, part] @ k[:, part].T * (len(part) ** -0.5 if scale else 1)
        out.append(logits.masked_fill(~sees, -math.inf).softmax(-1) @ v[:, part])
    return linear(w, f"{name}.out_proj", torch.cat(out, dim=1))


def feed_forward(w: Weights, name: str, x: Tensor) -> Tensor:
    return linear(w, f"{name}fc2", linear(w, f"{name}fc1", x).clamp(min=0))


def embedded(w: Weights, name: str, tokens: list[int], scale: float, size: int, kind: str) -> Tensor:
    """``kind`` of positions: none, sinusoidal or learned; they count from ``<pad>`` + 1 on."""
    x = scale * w[f"{name}embed_tokens.weight"][tokens]
    if f"{name}project_in_dim.weight" in w:
        x = linear(w, f"{name}project_in_dim", x)
    return x + positions(w, name, len(tokens), size, kind)


def positions(w: Weights, name: str, count: int, size: int, kind: str) -> Tensor:
    rows = torch.arange(PAD + 1, PAD + 1 + count)
    if kind == "none":
        return torch.zeros(count, size).double()
    if kind == "learned":
        return w[f"{name}embed_positions.weight"][rows]
    half = size // 2
    angles = rows.double()[:, None] * torch.exp(torch.arange(half).double() * -(math.log(10000) / (half - 1)))
    return torch.cat([angles.sin(), angles.cos()], dim=1)


def kind_of_positions(args: Args, none: str, learned: str) -> str:
    return "none" if args.get(none) else "learned" if args.get(learned) else "sinusoidal"


def tower(w: Weights, name: str, args: Args, x: Tensor, sees: Tensor, extra: str) -> list[Tensor]:
    states = []
    for layer in (f"{name}{n}." for n in range(args["decoder_layers"])):
        y = norm(w, f"{layer}self_attn_layer_norm", x)
        heads = args["decoder_attention_heads"]
        x = x + attention(w, f"{layer}self_attn", y, y, heads, sees, scale=True, extra=extra)
        x = x + feed_forward(w, layer, norm(w, f"{layer}final_layer_norm", x))
        states.append(x)
    return states


def shifted(x: Tensor, by: int) -> Tensor:
    """The state of the word before (1) or behind (-1); zero beyond the ends."""
    nothing = torch.zeros_like(x[:1])
    return torch.cat([nothing, x[:-1]]) if by == 1 else torch.cat([x[1:], nothing])


def join(w: Weights, p: str, args: Args, f: Tensor, b: Tensor, hide_self: bool) -> Tensor:
    if args.get("linear_final_layer"):
        return linear(w, f"{p}full_linear_layer", torch.cat([shifted(f, 1), shifted(b, -1)], dim=1))
    p += "full_attn_layer."
    f, b = norm(w, f"{p}fwd_layer_norm", f), norm(w, f"{p}bwd_layer_norm", b)
    query = [shifted(f, 1), shifted(b, -1)]
    i = torch.arange(len(f))
    before, behind = (
        (i[None] < i[:, None], i[None] > i[:, None]) if hide_self else (i[None] <= i[:, None], i[None] >= i[:, None])
    )
    heads = args["decoder_attention_heads"] * (2 if args.get("double_final_heads") else 1)
    q = torch.cat(query, dim=1) if args.get("concat_final_q") else query[0] + query[1]
    x = attention(w, f"{p}self_attn", q, torch.cat([f, b]), heads, torch.cat([before, behind], dim=1), scale=False)
    return x + feed_forward(w, p, norm(w, f"{p}final_layer_norm", x))


def language_model(
    w: Weights, p: str, args: Args, tokens: list[int], *, hide_self: bool = True
) -> tuple[list[Tensor], list[Tensor]]:
    """All states, as the released code lists them, and the states before the softmax."""
    size, i = args["decoder_embed_dim"], torch.arange(len(tokens))
    cloze = args["arch"].startswith("bi_")
    none = "no_token_positional_embeddings" if cloze else "no_dec_token_positional_embeddings"
    x = embedded(w, p, tokens, math.sqrt(size), size, kind_of_positions(args, none, "decoder_learned_pos"))
    if not cloze:
        states = [x, *tower(w, f"{p}layers.", args, x, i[None] <= i[:, None], "")]
        return states, [states[-1]]
    extra = "zero" if args.get("no_bias_kv") else "learned"
    f = tower(w, f"{p}forward_layers.", args, x, i[None] <= i[:, None], extra)
    b = tower(w, f"{p}backward_layers.", args, x, i[None] >= i[:, None], extra)
    states, tops = [x, *(state for pair in zip(f, b) for state in pair)], []
    if args.get("self_target"):
        tops = [join(w, p, args, f[-1], b[-1], hide_self)]
        states.append(tops[0])
    return states, tops + ([f[-1]] if args.get("future_target") else []) + ([b[-1]] if args.get("past_target") else [])


def softmax_input(w: Weights, p: str, args: Args, state: Tensor) -> Tensor:
    """Logits."""
    if f"{p}project_out_dim.weight" in w:
        state = linear(w, f"{p}project_out_dim", state)
    return state @ w[f"{p}embed_tokens.weight" if args.get("share_decoder_input_output_embed") else f"{p}embed_out"].T


def elmo(w: Weights, base: str, lm: Args, tokens: list[int], *, encoder: bool, softmax: bool = True) -> Tensor:
    """In the encoder states of both towers are combined, and context and joining block added; in the decoder not."""
    states, _ = language_model(
        w, f"{base}language_model.decoder.", lm, [EOS, *tokens] if encoder else tokens, hide_self=False
    )
    towers = states[1 : 1 + 2 * lm["decoder_layers"]] if lm["arch"].startswith("bi_") else states[1:]
    joined = states[1 + len(towers) :]
    if encoder:
        mixed = [torch.cat([a, b], dim=1) for a, b in zip(towers[::2], towers[1::2])]
        mixed = [
            torch.cat([states[0]] * 2, dim=1),
            *mixed,
            torch.cat([shifted(states[-1], 1), shifted(states[-1], -1)], dim=1),
        ]
        mixed += [torch.cat([state] * 2, dim=1) for state in joined]
    else:
        mixed = [states[0], *towers]
    shares = w[f"{base}weights"].softmax(0) if softmax else w[f"{base}weights"]
    assert len(shares) == len(mixed)
    x = sum(share * norm(w, f"{base}layer_norm", state) for share, state in zip(shares, mixed))
    x = w[f"{base}gamma"] * x[1 if encoder else 0 :]
    return linear(w, f"{base}projection", x) if f"{base}projection.weight" in w else x


def bilm(w: Weights, base: str, args: Args, lm: Args, tokens: list[int], *, encoder: bool) -> Tensor:
    add = encoder and bool(args.get("bilm_add_bos"))
    hide = args.get("bilm_mask_last_state") == "full" if encoder else True  # True hides nothing
    inner = f"{base}{'bilm' if encoder else 'lm'}.decoder."
    x = language_model(w, inner, lm, [EOS, *tokens] if add else tokens, hide_self=hide)[1][0][int(add) :]
    return linear(w, f"{base}proj", x) if f"{base}proj.weight" in w else x


def side(w: Weights, part: str, args: Args, lm: Args | None, tokens: list[int]) -> Tensor:
    """What stands where the word embeddings stand."""
    base = f"{part}.embedder." if part == "encoder" and args.get("embedding_only") else f"{part}.embed_tokens."
    path = args.get(f"{part}_embed_path") or ""
    if lm is None:
        return w[f"{base}weight"][tokens]
    if path.startswith("elmo:"):
        plain = args.get("elmo_softmax") is False
        return elmo(w, base, lm, tokens, encoder=part == "encoder", softmax=not plain)
    return bilm(w, base, args, lm, tokens, encoder=part == "encoder")


def stack(
    w: Weights,
    part: str,
    args: Args,
    lm: Args | None,
    tokens: list[int],
    memory: Tensor | None,
    step_by_step: bool = False,
) -> list[Tensor]:
    """The input, each layer's state, and what comes out; in generation a word is embedded before the next."""
    x, size, i = side(w, part, args, lm, tokens), args[f"{part}_embed_dim"], torch.arange(len(tokens))
    if step_by_step and part == "decoder":
        x = torch.stack([side(w, part, args, lm, tokens[: end + 1])[-1] for end in range(len(tokens))])
    if part == "encoder" and args.get("embedding_only"):
        return [x, x]
    scale = args.get(f"{part}_embed_scale")
    kind = kind_of_positions(args, f"no_{part[:3]}_token_positional_embeddings", f"{part}_learned_pos")
    x = (math.sqrt(size) if scale is None else scale) * x + positions(w, f"{part}.", len(tokens), size, kind)
    before, heads = args[f"{part}_normalize_before"], args[f"{part}_attention_heads"]
    everything = torch.ones(len(tokens), len(tokens if memory is None else memory), dtype=torch.bool)
    sees = everything if memory is None else i[None] <= i[:, None]

    def attend_here(layer: str, y: Tensor) -> Tensor:
        return attention(w, f"{layer}self_attn", y, y, heads, sees, scale=True)

    def attend_there(layer: str, y: Tensor) -> Tensor:
        assert memory is not None
        return attention(w, f"{layer}encoder_attn", y, memory, heads, everything, scale=True)

    def forward(layer: str, y: Tensor) -> Tensor:
        return feed_forward(w, layer, y)

    steps = [("layer_norms.0", attend_here), ("layer_norms.1", forward)]
    if memory is not None:
        steps = [("self_attn_layer_norm", attend_here), ("encoder_attn_layer_norm", attend_there)]
        steps.append(("final_layer_norm", forward))
    states = [x]
    for layer in (f"{part}.layers.{n}." for n in range(args[f"{part}_layers"])):
        for name, step in steps:
            name = layer + name
            x = x + step(layer, norm(w, name, x)) if before else norm(w, name, x + step(layer, x))
        states.append(x)
    return [*states, norm(w, f"{part}.layer_norm", x) if before and w[f"{part}.version"][0] >= 2 else x]


def seq2seq(
    weights: Weights,
    args: Args,
    lms: dict[str, Args],
    source: list[int],
    prefix: list[int],
    *,
    step_by_step: bool = False,
) -> tuple[Tensor, Tensor]:
    """Encoder output and logits."""
    w = double(weights)
    memory = stack(w, "encoder", args, lms.get("src"), source, None, step_by_step)[-1]
    state = stack(w, "decoder", args, lms.get("tgt"), prefix, memory, step_by_step)[-1]
    tied = args.get("share_decoder_input_output_embed") or args.get("share_all_embeddings")
    return memory, softmax_input(w, "decoder.", {"share_decoder_input_output_embed": tied}, state)
