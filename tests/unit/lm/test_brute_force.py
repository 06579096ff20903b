"""Attention, joining block and both whole models against float64 loops written down from SPEC section 1.

Nothing here is fast or shared with the package: one query at a time, every weight materialized, one
sentence at a time, the backward tower as a mask of its own instead of a reversed sentence.
"""

from __future__ import annotations

import math
from typing import Any, Callable

import pytest
import torch
from torch import Tensor, nn

from lmfusion.lm.transformer.attention import CausalSelfAttention
from lmfusion.lm.transformer.join import AttentionJoin, LinearJoin
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.operations import attention, causal_attention

Weights = dict[str, Tensor]
Sees = Callable[[int, int], bool]
SENTENCE = [2, 5, 9, 4, 11, 7, 2]


def weights_of(module: nn.Module) -> Weights:
    return {name: value.detach().double() for name, value in module.named_parameters()}


def within(weights: Weights, prefix: str) -> Weights:
    return {name[len(prefix) :]: value for name, value in weights.items() if name.startswith(prefix)}


def normalized(x: Tensor, weights: Weights) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    scaled = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt()
    return scaled * weights["weight"] + weights["bias"]


def attend(query: Tensor, keys: Tensor, values: Tensor, heads: int, scale: float, sees: Sees) -> Tensor:
    """Softmax attention of T queries over S keys; a query that sees no key gets zeros: T x C."""
    out = torch.zeros_like(query)
    size = query.size(1) // heads
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        for i in range(query.size(0)):
            seen = [j for j in range(keys.size(0)) if sees(i, j)]
            if seen:
                logits = torch.stack([scale * (query[i, part] * keys[j, part]).sum() for j in seen])
                shares = torch.exp(logits - logits.max())
                shares = shares / shares.sum()
                out[i, part] = sum(share * values[j, part] for share, j in zip(shares, seen))
    return out


def self_attention(x: Tensor, w: Weights, heads: int, bias_kv: str, sees: Sees) -> Tensor:
    """Scaled; the extra pair, if any, stands *behind* the sentence and everyone sees it. T x C."""
    channels = x.size(1)
    query, key, value = (x @ w["in_proj.weight"].T + w["in_proj.bias"]).split(channels, dim=1)
    extra = [(w["bias_k"], w["bias_v"])] if bias_kv == "learned" else []
    extra += [(torch.zeros(channels).double(),) * 2] if bias_kv == "zero" else []
    for k, v in extra:
        key, value = torch.cat([key, k[None]]), torch.cat([value, v[None]])
    scale = 1 / math.sqrt(channels // heads)
    out = attend(query, key, value, heads, scale, lambda i, j: j >= len(x) or sees(i, j))
    return out @ w["out_proj.weight"].T + w["out_proj.bias"]


def feed_forward(x: Tensor, w: Weights) -> Tensor:
    hidden = normalized(x, within(w, "layer_norm.")) @ w["fc1.weight"].T + w["fc1.bias"]
    return x + hidden.clamp(min=0) @ w["fc2.weight"].T + w["fc2.bias"]


def tower(x: Tensor, w: Weights, config: dict[str, Any], bias_kv: str, sees: Sees) -> list[Tensor]:
    states = [x]
    for number in range(config["decoder_layers"]):
        block = within(w, f"{number}.")
        query = normalized(x, within(block, "layer_norm."))
        heads = config["decoder_attention_heads"]
        x = x + self_attention(query, within(block, "self_attn."), heads, bias_kv, sees)
        x = feed_forward(x, within(block, "ffn."))
        states.append(x)
    return states


def embedded(tokens: list[int], w: Weights) -> Tensor:
    """sqrt(C) * token + sinusoid; fairseq's sinusoids, numbered from padding_idx + 1 = 2 on."""
    channels = w["embed.tokens.weight"].size(1)
    half = channels // 2
    rows = []
    for position, token in enumerate(tokens, start=2):
        angles = [position * 10000 ** (-k / (half - 1)) for k in range(half)]
        wave = [math.sin(a) for a in angles] + [math.cos(a) for a in angles]
        rows.append(math.sqrt(channels) * w["embed.tokens.weight"][token] + torch.tensor(wave).double())
    return torch.stack(rows)


def joined(f: Tensor, b: Tensor, w: Weights, heads: int, concat: bool, include_self: bool) -> Tensor:
    """SPEC section 1, "the joining block"; f and b are the towers' outputs, T x C."""
    time, channels = f.shape
    f, b = normalized(f, within(w, "fwd_layer_norm.")), normalized(b, within(w, "bwd_layer_norm."))
    nothing = torch.zeros(channels).double()
    queries = []
    for i in range(time):
        left, right = (f[i - 1] if i > 0 else nothing), (b[i + 1] if i + 1 < time else nothing)
        queries.append(torch.cat([left, right]) if concat else left + right)
    query = torch.stack(queries) @ w["q_proj.weight"].T + w["q_proj.bias"]
    both = torch.cat([f, b]) @ w["kv_proj.weight"].T + w["kv_proj.bias"]

    def sees(i: int, j: int) -> bool:
        if i in (j, j - time):
            return include_self
        return j < i if j < time else j - time > i

    out = attend(query, both[:, :channels], both[:, channels:], heads, 1.0, sees)
    return feed_forward(out @ w["out_proj.weight"].T + w["out_proj.bias"], within(w, "ffn."))


@pytest.mark.parametrize("bias_kv", ["none", "learned", "zero"])
def test_attention_of_a_tower(bias_kv: str, shake: Any) -> None:
    attention = shake(CausalSelfAttention(12, 3, dropout=0.0, bias_kv=bias_kv)).eval()
    x = torch.randn(2, 6, 12)
    for row, found in zip(x, attention(x)):
        expected = self_attention(row.double(), weights_of(attention), 3, bias_kv, lambda i, j: j <= i)
        torch.testing.assert_close(found.double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("include_self", [False, True])
@pytest.mark.parametrize("concat", [False, True])
def test_joining_block(concat: bool, include_self: bool, shake: Any) -> None:
    join: AttentionJoin = shake(
        AttentionJoin(12, 20, 3, concat_query=concat, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    )
    f, b = torch.randn(3, 6, 12), torch.randn(3, 6, 12)
    lengths = [6, 4, 1]
    padding = torch.arange(6) >= torch.tensor(lengths).unsqueeze(1)
    found = join(f, b, RowLayout(padding), include_self=include_self)
    for row, length in enumerate(lengths):
        own = f[row, :length].double(), b[row, :length].double()
        expected = joined(*own, weights_of(join), 3, concat, include_self)
        torch.testing.assert_close(found[row, :length].double(), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("bias", [False, True])
def test_linear_join_is_one_projection_of_both_neighbours(bias: bool, shake: Any) -> None:
    join = shake(LinearJoin(4, bias=bias))
    f, b = torch.randn(1, 3, 4), torch.randn(1, 3, 4)
    zero = torch.zeros(4)
    neighbours = [(zero, b[0, 1]), (f[0, 0], b[0, 2]), (f[0, 1], zero)]
    found = join(f, b, RowLayout(torch.zeros(1, 3, dtype=torch.bool)))
    for state, pair in zip(found[0], neighbours):
        expected = join.proj.weight @ torch.cat(pair) + (join.proj.bias if bias else 0)
        torch.testing.assert_close(state, expected)


@pytest.mark.parametrize(
    ("flags", "bias_kv"),
    [({}, "learned"), ({"no_bias_kv": True}, "zero"), ({"no_extra_kv": True}, "none"),
     ({"single_tower": True}, "learned"), ({"double_final_heads": True}, "learned"),
     ({"concat_final_q": True, "share_decoder_input_output_embed": True}, "learned")],
)  # fmt: skip
def test_whole_cloze_lm(make_cloze: Any, flags: dict[str, Any], bias_kv: str) -> None:
    """Logits with the narrow mask, and every state of the SRC-ELMO list with the wide one."""
    lm = make_cloze(**flags)
    w, config = weights_of(lm), lm.config
    x = embedded(SENTENCE, w)
    backward = "forward_layers." if config["single_tower"] else "backward_layers."
    f = tower(x, within(w, "forward_layers."), config, bias_kv, lambda i, j: j <= i)
    # Right to left, a word's position embedding still is that of its place in the sentence.
    b = tower(x, within(w, backward), config, bias_kv, lambda i, j: j >= i)
    heads = 2 * (2 if config["double_final_heads"] else 1)

    def join(include_self: bool) -> Tensor:
        return joined(f[-1], b[-1], within(w, "join."), heads, config["concat_final_q"], include_self)

    logits = join(False) @ w.get("output_weight", w["embed.tokens.weight"]).T
    nothing, top = torch.zeros(1, lm.embed_dim).double(), join(True)
    context = torch.cat([torch.cat([nothing, top[:-1]]), torch.cat([top[1:], nothing])], dim=1)
    states = [torch.cat(pair, 1) for pair in zip(f, b)] + [context, torch.cat([top, top], 1)]
    tokens = torch.tensor([SENTENCE])
    torch.testing.assert_close(lm(tokens)[0][0].double(), logits, rtol=0, atol=5e-5)
    torch.testing.assert_close(lm.top_state(tokens)[0].double(), top, rtol=0, atol=5e-5)
    assert len(states) == lm.num_layers + 3 == lm.num_states
    for found, expected in zip(lm.layer_states(tokens), states, strict=True):
        torch.testing.assert_close(found[0].double(), expected, rtol=0, atol=5e-5)


@pytest.mark.parametrize("tied", [False, True])
def test_whole_causal_lm(make_causal: Any, tied: bool) -> None:
    lm = make_causal(share_decoder_input_output_embed=tied)
    w = weights_of(lm)
    states = tower(embedded(SENTENCE, w), within(w, "layers."), lm.config, "none", lambda i, j: j <= i)
    softmax = w.get("output_weight")
    assert (softmax is None) == tied
    logits = states[-1] @ (w["embed.tokens.weight"] if softmax is None else softmax).T
    tokens = torch.tensor([SENTENCE])
    torch.testing.assert_close(lm(tokens)[0][0].double(), logits, rtol=0, atol=5e-5)
    assert len(states) == lm.num_layers + 1 == lm.num_states
    for found, expected in zip(lm.layer_states(tokens), states, strict=True):
        torch.testing.assert_close(found[0].double(), expected, rtol=0, atol=5e-5)


def test_attention_is_a_softmax_row_by_row_and_masked_before_it() -> None:
    """A lecture's scaled scores; it prints a softmax over the whole matrix, with zeros put in behind it."""
    scores = torch.tensor([[1.5, 1.4, 1.9], [1.8, 1.3, 2.0], [2.4, 2.0, 2.5]], dtype=torch.float64)
    query, one = (scores * math.sqrt(3))[None, None], torch.eye(3, dtype=torch.float64)[None, None]
    full = torch.tensor([[0.294, 0.266, 0.439], [0.354, 0.214, 0.432], [0.360, 0.242, 0.398]], dtype=torch.float64)
    masked = torch.tensor([[1, 0, 0], [0.622, 0.378, 0], [0.360, 0.242, 0.398]], dtype=torch.float64)
    visible = torch.ones(1, 1, 1, 3, dtype=torch.bool)
    torch.testing.assert_close(attention(query, one, one, visible)[0, 0], full, rtol=0, atol=6e-4)
    torch.testing.assert_close(causal_attention(query, one, one)[0, 0], masked, rtol=0, atol=6e-4)
