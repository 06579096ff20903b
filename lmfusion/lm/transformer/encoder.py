"""Embedding and post-norm block of a transformer encoder as BERT has them (Devlin et al. 2019)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fairseq.modules import LayerNorm
from torch import Tensor, nn

from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.operations import Linear, attention, dropout

EPSILON = 1e-12
"""Of every layer norm; fairseq's 1e-5 moves the embedding state by 0.016."""
_DEVIATION = 0.02  # of all matrices and embeddings at first


class EncoderEmbedding(nn.Module):
    """The input embedding, ``dropout(LN(token + position + segment))``.

    Args:
        num_embeddings: V, the vocabulary size.
        embed_dim: C.
        padding_idx: index of the padding symbol, whose embedding stays zero.
        separator: index of the symbol that ends a segment.
        positions: P, length of the longest row.
        dropout: of the normalized sum.
    """

    def __init__(
        self, num_embeddings: int, embed_dim: int, padding_idx: int, *, separator: int, positions: int, dropout: float
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(num_embeddings, embed_dim, padding_idx)
        self.positions = nn.Embedding(positions, embed_dim)
        self.segments = nn.Embedding(2, embed_dim)
        self.layer_norm = LayerNorm(embed_dim, eps=EPSILON)
        self.separator = separator
        self.dropout = dropout
        for table in (self.tokens, self.positions, self.segments):
            nn.init.normal_(table.weight, std=_DEVIATION)
        with torch.no_grad():
            self.tokens.weight[padding_idx].zero_()

    def forward(self, tokens: Tensor) -> Tensor:
        """Embed left-aligned rows: B x T -> B x T x C."""
        steps = torch.arange(tokens.size(1), device=tokens.device)
        # A row may be longer than any sentence by padding, where any position will do.
        positions = self.positions(steps.clamp(max=self.positions.num_embeddings - 1))
        x = self.tokens(tokens) + positions + self.segments(segments(tokens, self.separator))
        return dropout(self.layer_norm(x), self.dropout, self.training)


def segments(tokens: Tensor, separator: int) -> Tensor:
    """Return the segment of every token, B x T: 0 up to the first separator of its row and including it, then 1."""
    ends = tokens.eq(separator).long()
    return (ends.cumsum(dim=1) - ends).clamp(max=1)


class SelfAttention(nn.Module):
    """Multi-head self-attention in which every position attends to all words of its row.

    Args:
        embed_dim: C.
        num_heads: H; must divide ``embed_dim``.
        dropout: probability of dropping an attention weight.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, dropout: float) -> None:
        super().__init__()
        self.num_heads = num_heads
        self.dropout = dropout
        self.in_proj = linear(embed_dim, 3 * embed_dim)
        self.out_proj = linear(embed_dim, embed_dim)

    def forward(self, x: Tensor, layout: RowLayout) -> Tensor:
        """Compute the attention of every position; x, and the result, as ``layout`` packs it."""
        qkv = layout.unpack(self.in_proj(x))
        heads = qkv.view(*qkv.shape[:2], 3, self.num_heads, -1)
        query, key, value = heads.permute(2, 0, 3, 1, 4)  # B x T x 3 x H x D -> three of B x H x T x D
        visible = (~layout.padding)[:, None, None, :]  # B x 1 x 1 x T
        attended = attention(query, key, value, visible, dropout=self.dropout if self.training else 0.0)
        return self.out_proj(layout.pack(attended.transpose(1, 2).flatten(2)))  # B x H x T x D -> B x T x C


class PostNormBlock(nn.Module):
    """A post-norm encoder block: ``x = LN(x + attention(x))``, then ``LN(x + W2 gelu(W1 x))``.

    Args:
        embed_dim: C.
        ffn_dim: inner size of the feed-forward sub-block.
        num_heads: H; must divide ``embed_dim``.
        dropout: of both sub-blocks' outputs.
        attention_dropout: of attention weights.
    """

    def __init__(
        self, embed_dim: int, ffn_dim: int, num_heads: int, *, dropout: float, attention_dropout: float
    ) -> None:
        super().__init__()
        self.self_attn = SelfAttention(embed_dim, num_heads, dropout=attention_dropout)
        self.attn_layer_norm = LayerNorm(embed_dim, eps=EPSILON)
        self.fc1 = linear(embed_dim, ffn_dim)
        self.fc2 = linear(ffn_dim, embed_dim)
        self.ffn_layer_norm = LayerNorm(embed_dim, eps=EPSILON)
        self.dropout = dropout

    def forward(self, x: Tensor, layout: RowLayout) -> Tensor:
        """Apply the block to left-aligned rows; x, and the result, as ``layout`` packs it."""
        attended = dropout(self.self_attn(x, layout), self.dropout, self.training)
        x = self.attn_layer_norm(x + attended)
        made = dropout(self.fc2(F.gelu(self.fc1(x))), self.dropout, self.training)
        normed: Tensor = self.ffn_layer_norm(x + made)
        return normed


class MaskedHead(nn.Module):
    """The head that predicts masked words: ``LN(gelu(W x + b)) Eᵀ + c`` with the token embeddings E.

    Args:
        embed_dim: C.
        num_embeddings: V.
    """

    def __init__(self, embed_dim: int, num_embeddings: int) -> None:
        super().__init__()
        self.dense = linear(embed_dim, embed_dim)
        self.layer_norm = LayerNorm(embed_dim, eps=EPSILON)
        self.bias = nn.Parameter(torch.zeros(num_embeddings))

    def forward(self, x: Tensor, weight: Tensor) -> Tensor:
        """Turn states into logits by the token embeddings (V x C): ... x C -> ... x V."""
        return F.linear(self.layer_norm(F.gelu(self.dense(x))), weight, self.bias)


def linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer initialized as BERT's: normal weight of standard deviation 0.02, zero bias."""
    layer = Linear(in_features, out_features)
    nn.init.normal_(layer.weight, std=_DEVIATION)
    nn.init.zeros_(layer.bias)
    return layer
