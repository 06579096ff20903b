"""Join the two towers of the cloze LM (SPEC section 1, "the joining block")."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fairseq.modules import LayerNorm
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.lm.transformer.layers import FeedForward
from lmfusion.lm.transformer.layout import RowLayout, shift_left, shift_right
from lmfusion.operations import Linear, attention, dropout, linear


class AttentionJoin(nn.Module):
    """The joining block: self-attention over both towers, then feed-forward (SPEC section 1).

    The query at position i is ``f[i-1] + b[i+1]``, which has seen everything but token i. Keys and values are all
    f and all b; position i may attend to f[j], j < i and b[j], j > i (j <= i and j >= i where
    ``include_self``). There is no residual around the attention, for the query is not the token
    itself, and its logits are *not* scaled by 1/sqrt(D), as in the paper's released code.

    Args:
        embed_dim: C.
        ffn_dim: inner size of the feed-forward part.
        num_heads: H.
        concat_query: project ``[f[i-1]; b[i+1]]`` (2C -> C) for the query instead of the sum.
        dropout, attention_dropout, activation_dropout: as in a tower's block.

    Raises:
        InputError: if ``num_heads`` does not divide ``embed_dim``.
    """

    def __init__(
        self,
        embed_dim: int,
        ffn_dim: int,
        num_heads: int,
        *,
        concat_query: bool,
        dropout: float,
        attention_dropout: float,
        activation_dropout: float,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise InputError(f"{num_heads} attention heads do not divide {embed_dim} channels")
        self.num_heads = num_heads
        self.concat_query = concat_query
        self.fwd_layer_norm = LayerNorm(embed_dim)
        self.bwd_layer_norm = LayerNorm(embed_dim)
        self.q_proj = Linear(2 * embed_dim if concat_query else embed_dim, embed_dim)
        self.kv_proj = Linear(embed_dim, 2 * embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)
        for projection in (self.q_proj, self.kv_proj, self.out_proj):
            nn.init.xavier_uniform_(projection.weight)
            nn.init.zeros_(projection.bias)
        # Unscaled logits are sqrt(D) times the usual ones; start where a scaled attention would. The released code does
        # not: its query starts 4 times as large (D = 32). On the embedded English text (2 blocks, 64 channels, 450
        # updates) validation loss was 5.66, 5.55, 5.56 nats with ours (seeds 1 to 3), 5.73, 5.68, 5.74 with theirs.
        with torch.no_grad():
            self.q_proj.weight.mul_((embed_dim // num_heads) ** -0.5)
        self.dropout = dropout
        self.attention_dropout = attention_dropout
        self.ffn = FeedForward(embed_dim, ffn_dim, dropout=dropout, activation_dropout=activation_dropout)

    def forward(self, fwd: Tensor, bwd: Tensor, layout: RowLayout, *, include_self: bool = False) -> Tensor:
        """Compute a state for every position from the outputs of both towers.

        Args:
            fwd: f, B x T x C, the forward tower's output on left-aligned rows.
            bwd: b, B x T x C, the backward tower's output, in the same order of words.
            layout: of the batch.
            include_self: widen the mask to the token itself (for use as a representation).

        Returns:
            B x T x C.
        """
        # Zeroed padding makes b[i+1] a zero vector at the last word, whatever the batch.
        padding = layout.padding.unsqueeze(-1)
        fwd_norm = _layer_norm(self.fwd_layer_norm, fwd).masked_fill(padding, 0.0)
        bwd_norm = _layer_norm(self.bwd_layer_norm, bwd).masked_fill(padding, 0.0)
        before, after = shift_right(fwd_norm), shift_left(bwd_norm)
        query = torch.cat([before, after], -1) if self.concat_query else before + after
        x = self._attend(query, torch.cat([fwd_norm, bwd_norm], 1), layout, include_self).to(fwd.dtype)
        return layout.unpack(self.ffn(layout.pack(dropout(x, self.dropout, self.training))))

    def _attend(self, query: Tensor, both: Tensor, layout: RowLayout, include_self: bool) -> Tensor:
        visible = _visible(layout.padding, include_self)  # B x T x 2T
        # A word alone in its row sees nothing. A row without any key is NaN in some kernels: let
        # it see everything and take the result away again.
        blind = ~visible.any(-1, keepdim=True)  # B x T x 1
        k_weight, v_weight = self.kv_proj.weight.chunk(2)
        k_bias, v_bias = self.kv_proj.bias.chunk(2)
        v = linear(both.to(v_weight.dtype), v_weight, v_bias)
        # Unscaled logits may leave the range of fp16, and a query or key rounded to half precision moves a logit of
        # some hundreds by as much as lies between two words: all that makes logits is taken in fp32.
        with torch.autocast(query.device.type, enabled=False):
            q = linear(query, _single(self.q_proj.weight), _single(self.q_proj.bias))
            k = linear(both, _single(k_weight), _single(k_bias))
            x = self._weigh(q, k, _single(v), (visible | blind).unsqueeze(1))
        x = x.to(v.dtype).transpose(1, 2).flatten(2)  # B x H x T x D -> B x T x C
        return self.out_proj(x.masked_fill(blind, 0.0))

    def _weigh(self, q: Tensor, k: Tensor, v: Tensor, visible: Tensor) -> Tensor:
        """Compute unscaled attention: B x T x C and twice B x 2T x C -> B x H x T x D."""
        q, k, v = (self._split_heads(tensor) for tensor in (q, k, v))
        dropout = self.attention_dropout if self.training else 0.0
        return attention(q, k, v, visible, dropout=dropout, scale=1.0)

    def _split_heads(self, x: Tensor) -> Tensor:
        """Split channels into heads: B x T x C -> B x H x T x D."""
        return x.view(x.size(0), x.size(1), self.num_heads, -1).transpose(1, 2)


class LinearJoin(nn.Module):
    """A linear joining block, ``W [f[i-1]; b[i+1]]`` (2C -> C), as in the paper's released code.

    Args:
        embed_dim: C.
        bias: give the layer a bias.
    """

    def __init__(self, embed_dim: int, *, bias: bool) -> None:
        super().__init__()
        self.proj = Linear(2 * embed_dim, embed_dim, bias=bias)
        nn.init.xavier_uniform_(self.proj.weight)
        if bias:
            nn.init.zeros_(self.proj.bias)

    def forward(self, fwd: Tensor, bwd: Tensor, layout: RowLayout, *, include_self: bool = False) -> Tensor:
        """Join like :meth:`AttentionJoin.forward`; ``include_self`` has no effect, for there is no mask to widen."""
        padding = layout.padding.unsqueeze(-1)
        before = shift_right(fwd.masked_fill(padding, 0.0))
        after = shift_left(bwd.masked_fill(padding, 0.0))
        return self.proj(torch.cat([before, after], -1))


def _layer_norm(layer_norm: nn.LayerNorm, x: Tensor) -> Tensor:
    """Apply a layer norm in float32 where its weights and states are in half precision."""
    with torch.autocast(x.device.type, enabled=False):
        weight, bias = _single(layer_norm.weight), _single(layer_norm.bias)
        return F.layer_norm(_single(x), layer_norm.normalized_shape, weight, bias, layer_norm.eps)


def _single(x: Tensor) -> Tensor:
    """Return a tensor in float32, one of float64 as it is."""
    return x.to(torch.promote_types(x.dtype, torch.float32))


def _visible(padding: Tensor, include_self: bool) -> Tensor:
    """Return the mask of the 2T keys (f, then b) for each position: B x T x 2T, True where visible."""
    time = padding.size(1)
    offset = 0 if include_self else 1
    square = torch.ones(time, time, dtype=torch.bool, device=padding.device)
    mask = torch.cat([square.tril(-offset), square.triu(offset)], dim=1)  # T x 2T
    real = ~torch.cat([padding, padding], dim=1)  # B x 2T
    return mask & real.unsqueeze(1)
