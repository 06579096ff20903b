"""Causal self-attention, with an optional extra key/value pair and a cache for decoding.

It is computed by :mod:`lmfusion.operations` and :func:`torch.nn.functional.scaled_dot_product_attention`, so that
fused kernels apply where there are good ones. Rows are left-aligned (see
:mod:`lmfusion.lm.transformer.layout`): a causal mask is all that is needed, padding needs none.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from fairseq.incremental_decoding_utils import FairseqIncrementalState
from torch import Tensor, nn

from lmfusion.lm.interface import IncrementalState
from lmfusion.lm.transformer.kv_cache import KeyValueCache
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.operations import Linear, causal_attention

NO_BIAS_KV, LEARNED_BIAS_KV, ZERO_BIAS_KV = "none", "learned", "zero"


class CausalSelfAttention(FairseqIncrementalState, nn.Module):
    """Multi-head self-attention in which position i attends to positions <= i (SPEC section 1).

    Optionally one more key/value pair, which every position may attend to, is put in front of the
    sentence: learned ("bias kv", Baevski et al. 2019) or zero.

    Args:
        embed_dim: C.
        num_heads: H; must divide ``embed_dim``.
        dropout: probability of dropping an attention weight.
        bias_kv: ``"none"``, ``"learned"`` or ``"zero"``.

    Raises:
        ValueError: if ``num_heads`` does not divide ``embed_dim`` or ``bias_kv`` is none of these.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, dropout: float, bias_kv: str = NO_BIAS_KV) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(f"{num_heads} attention heads do not divide {embed_dim} channels")
        if bias_kv not in (NO_BIAS_KV, LEARNED_BIAS_KV, ZERO_BIAS_KV):
            raise ValueError(f"bias_kv is {bias_kv!r}; valid are none, learned and zero")
        self.num_heads = num_heads
        self.dropout = dropout
        self.in_proj = Linear(embed_dim, 3 * embed_dim)
        self.out_proj = Linear(embed_dim, embed_dim)
        self.bias_kv = bias_kv
        if bias_kv == LEARNED_BIAS_KV:
            self.bias_k = nn.Parameter(torch.empty(embed_dim))
            self.bias_v = nn.Parameter(torch.empty(embed_dim))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialize projections Xavier-uniform as fairseq does, the extra pair with standard deviation 1/sqrt(C)."""
        nn.init.xavier_uniform_(self.in_proj.weight)
        nn.init.zeros_(self.in_proj.bias)
        nn.init.xavier_uniform_(self.out_proj.weight)
        nn.init.zeros_(self.out_proj.bias)
        if self.bias_kv == LEARNED_BIAS_KV:
            # The pair is one key and one value of C channels: the same scale as an embedding.
            for parameter in (self.bias_k, self.bias_v):
                nn.init.normal_(parameter, std=parameter.numel() ** -0.5)

    def forward(
        self, x: Tensor, incremental_state: IncrementalState | None = None, layout: RowLayout | None = None
    ) -> Tensor:
        """Compute the attention of every position.

        Args:
            x: B x T x C, left-aligned rows; with ``incremental_state`` only the new positions; with ``layout`` packed
                by it.
            incremental_state: fairseq's decoding state, which keeps keys and values.
            layout: of the batch, if x is packed.

        Returns:
            The attended values, projected; in the shape of x.
        """
        qkv = self.in_proj(x)
        if layout is not None:
            qkv = layout.unpack(qkv)
        # Putting the extra pair in front, together with a query nobody reads, keeps the problem a
        # square causal one, for which every fused kernel has a fast path.
        has_front = self.bias_kv != NO_BIAS_KV and self._cache(incremental_state) is None
        if has_front:
            qkv = torch.cat([self._front(qkv), qkv], dim=1)
        attended = self._attend(*self.heads(qkv, incremental_state))
        if has_front:
            attended = attended[:, :, 1:]
        return self.project(attended, layout)

    def heads(self, qkv: Tensor, incremental_state: IncrementalState | None = None) -> tuple[Tensor, Tensor, Tensor]:
        """Split into heads, and put keys and values behind the cached ones.

        Args:
            qkv: B x T x 3C.
            incremental_state: fairseq's decoding state, which keeps keys and values.

        Returns:
            Query, B x H x T x D, then key and value of these positions and those before them, B x H x T_all x D.
        """
        query, key, value = self._split_heads(qkv)
        if incremental_state is None:
            return query, key, value
        cache = self._add(qkv, self._cache(incremental_state))
        self._store(incremental_state, cache)
        return query, cache.key, cache.value

    def project(self, attended: Tensor, layout: RowLayout | None = None) -> Tensor:
        """Project attended values, B x H x T x D -> B x T x C, or packed as ``layout`` does."""
        attended = attended.transpose(1, 2).flatten(2)  # B x H x T x D -> B x T x C
        attended = attended if layout is None else layout.pack(attended)
        # Behind the extra pair it may be a view with gaps, which F.linear takes by a product for every row (bmm).
        return self.out_proj(attended.contiguous())

    def _attend(self, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        new, total = query.size(2), key.size(2)
        dropout = self.dropout if self.training else 0.0
        if new == total:
            return causal_attention(query, key, value, dropout=dropout)
        mask = None
        if new > 1:  # several new positions behind a cache: causal at the lower right
            mask = torch.ones(new, total, dtype=torch.bool, device=query.device)
            mask = mask.tril(total - new)
        return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)

    def _front(self, qkv: Tensor) -> Tensor:
        """Return the extra pair as one more position: B x 1 x 3C (query, key, value)."""
        batch, channels = qkv.size(0), qkv.size(2) // 3
        if self.bias_kv == ZERO_BIAS_KV:
            return qkv.new_zeros(batch, 1, 3 * channels)
        front = torch.cat([torch.zeros_like(self.bias_k), self.bias_k, self.bias_v])
        return front.to(qkv.dtype).expand(batch, 1, -1)

    def _split_heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Split query, key and value into heads: B x T x 3C -> three of B x H x T x D."""
        batch, time, _ = qkv.shape
        query, key, value = qkv.view(batch, time, 3, self.num_heads, -1).permute(2, 0, 3, 1, 4)
        return query, key, value

    def _add(self, qkv: Tensor, cache: KeyValueCache | None) -> KeyValueCache:
        """Return a cache of the cached positions, if there are any, and the new ones (B x T x 3C)."""
        new = qkv.view(*qkv.shape[:2], 3, self.num_heads, -1)[:, :, 1:]
        return (KeyValueCache.empty(new) if cache is None else cache).add(new)

    def _cache(self, state: IncrementalState | None) -> KeyValueCache | None:
        entry = FairseqIncrementalState.get_incremental_state(self, state, "kv")
        return None if entry is None else entry["cache"]

    def _store(self, state: IncrementalState, cache: KeyValueCache) -> None:
        FairseqIncrementalState.set_incremental_state(self, state, "kv", {"cache": cache})

    def cached_length(self, state: IncrementalState | None) -> int:
        """Return the number of positions in a decoding state's cache, the extra pair left out."""
        cache = self._cache(state)
        return 0 if cache is None else cache.length - int(self.bias_kv != NO_BIAS_KV)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Reorder the cache with the beam: row b becomes former row ``new_order[b]``."""
        cache = self._cache(incremental_state)
        if cache is not None:
            self._store(incremental_state, cache.reorder(new_order))
