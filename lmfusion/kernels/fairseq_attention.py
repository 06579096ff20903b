"""fairseq's attention, trained faster on a CPU: its parameters, its figures, other kernels.

fairseq gives self-attention to PyTorch's fused kernel for CPUs, whose backward pass is slow in bfloat16 and which knows
no dropout; attention to the encoder it computes by itself, with the weights in float32. Both project by products that
leave AMD's AVX-512 units idle (:mod:`lmfusion.kernels.matrix_product`). Figures: benchmarks/RESULTS.md.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from lmfusion.kernels import attention as cpu_attention


class FastAttention(MultiheadAttention):
    """An attention module of fairseq with kernels of its own for training steps on a CPU that ask for no weights."""

    def forward(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        incremental_state: dict[str, Any] | None = None,
        need_weights: bool = True,
        static_kv: bool = False,
        attn_mask: Tensor | None = None,
        before_softmax: bool = False,
        need_head_weights: bool = False,
    ) -> tuple[Tensor, Tensor | None]:
        """Attend as fairseq does: T x B x C, and the attention weights where they are asked for."""
        is_step = self.training and incremental_state is None
        is_plain = is_step and not (need_weights or need_head_weights or before_softmax)
        if not is_plain or key is None or value is None or not self._is_usual(query):
            more = (incremental_state, need_weights, static_kv, attn_mask, before_softmax, need_head_weights)
            result: tuple[Tensor, Tensor | None] = super().forward(query, key, value, key_padding_mask, *more)
            return result
        q, k, v = (self._heads(x) for x in (self.q_proj(query), self.k_proj(key), self.v_proj(value)))
        mask = _mask(q, k, attn_mask, key_padding_mask)
        dropout = self.dropout_module.p
        if cpu_attention.is_faster(q, dropout):
            attended = cpu_attention.masked_attention(q, k, v, mask, dropout=dropout)
        else:
            attended = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=dropout)
        return self.out_proj(attended.permute(2, 0, 1, 3).flatten(2)), None  # B x H x T x D -> T x B x C

    def _is_usual(self, query: Tensor) -> bool:
        return query.device.type == "cpu" and self.bias_k is None and not (self.add_zero_attn or self.use_xformers)

    def _heads(self, x: Tensor) -> Tensor:
        """Split T x B x C into heads: B x H x T x D."""
        return x.unflatten(2, (self.num_heads, -1)).permute(1, 2, 0, 3)


def use_fast_attention(model: nn.Module) -> None:
    """Make every attention of a fairseq model a :class:`FastAttention`, which has the same parameters.

    Not for models trained with quantization noise on their projections (``--quant-noise-pq``): fairseq's attention
    passes some of them by, which changes what they add.
    """
    for module in model.modules():
        if type(module) is MultiheadAttention:
            module.__class__ = FastAttention


def _mask(query: Tensor, key: Tensor, attn_mask: Tensor | None, padding: Tensor | None) -> Tensor:
    """Make what is added to the products of queries and keys: expands to B x 1 x T x S, in their type.

    Padding gets the least number, not minus infinity: its weight is 0 all the same, and a query that sees nothing else
    (in left-padded targets, the padding's own) has a result, which nobody reads, instead of NaN.
    """
    if attn_mask is None:
        mask = query.new_zeros(1, 1)
    elif attn_mask.dtype in (torch.bool, torch.uint8):
        mask = query.new_zeros(attn_mask.shape).masked_fill(attn_mask.bool(), float("-inf"))
    else:
        mask = attn_mask.to(query.dtype)
    if padding is not None:
        mask = mask.expand(query.size(0), 1, -1, key.size(2))
        mask = mask.masked_fill(padding.bool()[:, None, None], torch.finfo(query.dtype).min)
    return mask
