"""Embedding, transformer block and tower, the parts of both language models (SPEC section 1)."""

from __future__ import annotations

import math

import torch
from fairseq.modules import LayerNorm, SinusoidalPositionalEmbedding
from torch import Tensor, nn

from lmfusion.lm.interface import IncrementalState
from lmfusion.lm.transformer.attention import NO_BIAS_KV, CausalSelfAttention
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.operations import Linear, dropout, relu_dropout


class FeedForward(nn.Module):
    """The pre-norm feed-forward sub-block, ``x + dropout(W2 dropout(relu(W1 LN(x))))`` (SPEC section 1).

    Args:
        embed_dim: C.
        ffn_dim: inner size.
        dropout: of the output.
        activation_dropout: after the ReLU.
    """

    def __init__(self, embed_dim: int, ffn_dim: int, *, dropout: float, activation_dropout: float) -> None:
        super().__init__()
        self.layer_norm = LayerNorm(embed_dim)
        self.fc1 = _linear(embed_dim, ffn_dim)
        self.fc2 = _linear(ffn_dim, embed_dim)
        self.dropout = dropout
        self.activation_dropout = activation_dropout

    def forward(self, x: Tensor) -> Tensor:
        """Apply the sub-block with its residual: ... x C -> ... x C."""
        hidden = relu_dropout(self.fc1(self.layer_norm(x)), self.activation_dropout, self.training)
        return x + dropout(self.fc2(hidden), self.dropout, self.training)


class Block(nn.Module):
    """A pre-norm transformer block: causal self-attention, then feed-forward (SPEC section 1).

    Args:
        embed_dim: C.
        ffn_dim: inner size of the feed-forward sub-block.
        num_heads: H.
        dropout: of both sub-blocks' outputs.
        attention_dropout: of attention weights.
        activation_dropout: after the ReLU.
        bias_kv: extra key/value pair, see :class:`CausalSelfAttention`.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_dim: int,
        num_heads: int,
        *,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
        bias_kv: str = NO_BIAS_KV,
    ) -> None:
        super().__init__()
        self.layer_norm = LayerNorm(embed_dim)
        self.self_attn = CausalSelfAttention(embed_dim, num_heads, dropout=attention_dropout, bias_kv=bias_kv)
        self.ffn = FeedForward(embed_dim, ffn_dim, dropout=dropout, activation_dropout=activation_dropout)
        self.dropout = dropout

    def forward(
        self, x: Tensor, incremental_state: IncrementalState | None = None, layout: RowLayout | None = None
    ) -> Tensor:
        """Apply the block to left-aligned rows.

        Args:
            x: B x T x C, or N x C as ``layout`` packs it; with ``incremental_state`` only new positions.
            incremental_state: fairseq's decoding state, which keeps keys and values.
            layout: of the batch, if x is packed.

        Returns:
            The output in the shape of x.
        """
        return self.finish(x, self.self_attn(self.layer_norm(x), incremental_state, layout))

    def finish(self, x: Tensor, attended: Tensor) -> Tensor:
        """Add projected attention to the block's input and apply feed-forward; all of the shape of x."""
        return self.ffn(x + dropout(attended, self.dropout, self.training))


class Tower(nn.ModuleList):
    """A stack of N causal blocks; no layer norm follows the last one."""

    def forward(
        self, x: Tensor, incremental_state: IncrementalState | None = None, layout: RowLayout | None = None
    ) -> list[Tensor]:
        """Apply the blocks one after the other; arguments are those of :meth:`Block.forward`.

        Returns:
            The output of every block, each in the shape of x.
        """
        states = []
        for block in self:
            x = block(x, incremental_state, layout)
            states.append(x)
        return states


class TokenEmbedding(nn.Module):
    """The input embedding of both towers, ``dropout(sqrt(C) * token + position)`` (SPEC section 1).

    Args:
        num_embeddings: V, the vocabulary size.
        embed_dim: C.
        padding_idx: index of the padding symbol, whose embedding stays zero.
        unk_idx: index of the symbol that ``input_dropout`` puts in place of tokens.
        max_positions: length of the longest sentence.
        learned_positions: learn position embeddings instead of sinusoids.
        no_positions: use none at all.
        dropout: dropout of the sum.
        input_dropout: probability that a token is replaced by ``<unk>`` in training.
    """

    sinusoids: Tensor

    def __init__(
        self,
        num_embeddings: int,
        embed_dim: int,
        padding_idx: int,
        *,
        unk_idx: int,
        max_positions: int,
        learned_positions: bool,
        no_positions: bool,
        dropout: float,
        input_dropout: float,
    ) -> None:
        super().__init__()
        self.tokens = nn.Embedding(num_embeddings, embed_dim, padding_idx)
        nn.init.normal_(self.tokens.weight, std=embed_dim**-0.5)
        with torch.no_grad():
            self.tokens.weight[padding_idx].zero_()
        self.scale = math.sqrt(embed_dim)
        self.padding_idx = padding_idx
        self.unk_idx = unk_idx
        self.max_positions = max_positions
        self.dropout = dropout
        self.input_dropout = input_dropout
        self.has_positions = not no_positions
        self.learned_positions: nn.Embedding | None = None
        if self.has_positions and learned_positions:
            self.learned_positions = nn.Embedding(max_positions, embed_dim)
            nn.init.normal_(self.learned_positions.weight, std=embed_dim**-0.5)
        # A function of its shape only: built when first needed, never saved.
        self.register_buffer("sinusoids", torch.empty(0), persistent=False)

    def forward(self, tokens: Tensor, offset: int = 0, prefix: Tensor | None = None) -> Tensor:
        """Embed left-aligned rows.

        Args:
            tokens: B x T.
            offset: number of positions before the first column.
            prefix: B x S, True at words of what stands before each row; ``offset`` then counts from its end.

        Returns:
            B x T x C.
        """
        if self.training and self.input_dropout > 0:
            lost = torch.rand(tokens.shape, device=tokens.device) < self.input_dropout
            tokens = tokens.masked_fill(lost & tokens.ne(self.padding_idx), self.unk_idx)
        x = self.scale * self.tokens(tokens)
        if self.has_positions:
            x = x + self._rows(offset, tokens.size(1), prefix).to(x.dtype)
        return dropout(x, self.dropout, self.training)

    def _rows(self, offset: int, time: int, prefix: Tensor | None) -> Tensor:
        """Return the position embeddings of columns behind ``offset``: T x C, or B x T x C behind prefixes."""
        if prefix is None:
            return self._positions(offset, offset + time)
        steps = torch.arange(offset, offset + time, device=prefix.device)
        # By the prefixes' width: their greatest length on a GPU would have to be waited for.
        return self._positions(0, prefix.size(1) + offset + time)[prefix.sum(1, keepdim=True) + steps]

    def _positions(self, start: int, end: int) -> Tensor:
        """Return the position embeddings of [start, end): T x C."""
        if self.learned_positions is not None:
            weight = self.learned_positions.weight
            if end <= self.max_positions:
                return weight[start:end]
            # Rows may be longer than any sentence by padding, where any position will do.
            return weight[torch.arange(start, end, device=weight.device).clamp(max=self.max_positions - 1)]
        # fairseq numbers positions from padding_idx + 1 on; released models count on it.
        start, end = start + self.padding_idx + 1, end + self.padding_idx + 1
        if self.sinusoids.size(0) < end:
            rows = max(end, 2 * self.sinusoids.size(0), 256)
            table = SinusoidalPositionalEmbedding.get_embedding(rows, self.tokens.embedding_dim, self.padding_idx)
            self.sinusoids = table.to(self.tokens.weight.device, torch.float32)
        return self.sinusoids[start:end].to(self.tokens.weight.device)


def _linear(in_features: int, out_features: int) -> nn.Linear:
    """Return a linear layer initialized as fairseq does: Xavier-uniform weight, zero bias."""
    layer = Linear(in_features, out_features)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer
