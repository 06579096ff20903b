"""The two language models written as in a textbook, on the weights of lmfusion's.

Attention weights are materialized, masks are added to the logits, the two towers are separate passes over the same
order of words, and all logits exist at once: what a straightforward implementation of the paper does.
"""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
from fairseq.models import FairseqLanguageModel
from torch import Tensor, nn

from lmfusion.lm.transformer.layout import shift_left, shift_right


def _heads(x: Tensor, heads: int) -> Tensor:
    """B x T x C -> B x H x T x D."""
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def _attend(query: Tensor, key: Tensor, value: Tensor, mask: Tensor, dropout: float) -> Tensor:
    """Softmax(QK + mask) V, with the weights in memory; B x H x T x D -> B x T x C."""
    scores = query @ key.transpose(-1, -2)
    weights = torch.softmax(scores + mask.to(scores.dtype), dim=-1)
    return (F.dropout(weights, dropout) @ value).transpose(1, 2).flatten(2)


def _linear(layer: Any, x: Tensor) -> Tensor:
    """By PyTorch's own choice of kernel, not by lmfusion's."""
    return F.linear(x, layer.weight, layer.bias)


def _additive(visible: Tensor) -> Tensor:
    return torch.zeros(visible.shape, device=visible.device).masked_fill(~visible, -1e4)


def _feed_forward(ffn: Any, x: Tensor) -> Tensor:
    hidden = F.dropout(F.relu(_linear(ffn.fc1, ffn.layer_norm(x))), ffn.activation_dropout, ffn.training)
    return x + F.dropout(_linear(ffn.fc2, hidden), ffn.dropout, ffn.training)


def _block(block: Any, x: Tensor, mask: Tensor) -> Tensor:
    attention = block.self_attn
    query, key, value = _linear(attention.in_proj, block.layer_norm(x)).chunk(3, -1)
    if attention.bias_kv == "learned":
        batch = x.size(0)
        key = torch.cat([key, attention.bias_k.expand(batch, 1, -1)], 1)
        value = torch.cat([value, attention.bias_v.expand(batch, 1, -1)], 1)
    heads = attention.num_heads
    query = _heads(query, heads) / math.sqrt(x.size(-1) // heads)
    dropout = attention.dropout if block.training else 0.0
    attended = _attend(query, _heads(key, heads), _heads(value, heads), mask, dropout)
    attended = _linear(attention.out_proj, attended)
    return _feed_forward(block.ffn, x + F.dropout(attended, block.dropout, block.training))


def _tower(blocks: Any, x: Tensor, padding: Tensor, triangle: Tensor, extra: bool) -> Tensor:
    visible = triangle & ~padding.unsqueeze(1)
    if extra:
        visible = F.pad(visible, (0, 1), value=True)
    mask = _additive(visible).unsqueeze(1)
    for block in blocks:
        x = _block(block, x, mask)
    return x


class PlainLM(nn.Module):
    """One of lmfusion's language models, computed plainly.

    Args:
        model: whose weights it takes.
    """

    def __init__(self, model: FairseqLanguageModel) -> None:
        super().__init__()
        self.lm = model.decoder
        # As fairseq's criterions want it; these do not depend on how logits were computed.
        self.get_normalized_probs, self.get_targets = model.get_normalized_probs, model.get_targets

    def forward(self, src_tokens: Tensor, src_lengths: Tensor | None = None) -> tuple[Tensor, dict[str, Any]]:
        """B x T right-padded -> logits, B x T x V, and nothing."""
        return (cloze_logits if self.lm.sees_future else causal_logits)(self.lm, src_tokens), {}


def causal_logits(lm: Any, tokens: Tensor) -> Tensor:
    """B x T right-padded -> B x T x V."""
    time = tokens.size(1)
    square = torch.ones(time, time, dtype=torch.bool, device=tokens.device)
    # A padded position would see nothing but itself: let it.
    x = _tower(lm.layers, lm.embed(tokens), tokens.eq(lm.padding_idx), square.tril(), extra=False)
    return lm.output_layer(x)


def cloze_logits(lm: Any, tokens: Tensor) -> Tensor:
    """B x T right-padded -> B x T x V."""
    padding, time = tokens.eq(lm.padding_idx), tokens.size(1)
    square = torch.ones(time, time, dtype=torch.bool, device=tokens.device)
    x = lm.embed(tokens)
    # Both towers number positions by the reading order of the words.
    fwd = _tower(lm.forward_layers, x, padding, square.tril(), extra=True)
    bwd = _tower(lm.backward_layers, x, padding, square.triu(), extra=True)
    join, blank = lm.join, padding.unsqueeze(-1)
    fwd = join.fwd_layer_norm(fwd).masked_fill(blank, 0.0)
    bwd = join.bwd_layer_norm(bwd).masked_fill(blank, 0.0)
    both = torch.cat([fwd, bwd], 1)
    visible = torch.cat([square.tril(-1), square.triu(1)], 1) & ~torch.cat([padding, padding], 1).unsqueeze(1)
    query = _heads(_linear(join.q_proj, shift_right(fwd) + shift_left(bwd)), join.num_heads)
    key, value = _linear(join.kv_proj, both).chunk(2, -1)
    dropout = join.attention_dropout if lm.training else 0.0
    mask = _additive(visible).unsqueeze(1)
    x = _attend(query, _heads(key, join.num_heads), _heads(value, join.num_heads), mask, dropout)
    x = _linear(join.out_proj, x)
    return lm.output_layer(_feed_forward(join.ffn, F.dropout(x, join.dropout, lm.training)))
