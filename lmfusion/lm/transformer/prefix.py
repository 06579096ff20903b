"""A causal tower that reads a prefix in both directions: what comes behind it sees all of it.

Position i of a row sees position j if ``j <= i or j < length of the prefix`` (Dong et al. 2019, UniLM, arXiv
1905.03197, section 2.2, "sequence-to-sequence LM"). Words of the prefix never see what comes behind, so that their keys
and values are computed once and stay as they are.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from lmfusion.lm.interface import IncrementalState
from lmfusion.lm.transformer.attention import CausalSelfAttention
from lmfusion.lm.transformer.layers import Block, Tower
from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.operations import attention


@dataclass(frozen=True)
class Prefix:
    """Hold what a tower keeps of the prefixes of a batch.

    Attributes:
        keys: of every block, B x H x S x D.
        values: of every block, B x H x S x D.
        visible: B x S, True at words; each prefix stands at the left.
    """

    keys: list[Tensor]
    values: list[Tensor]
    visible: Tensor


def read_prefix(tower: Tower, x: Tensor, layout: RowLayout) -> Prefix:
    """Compute what is kept of prefixes, whose words all see each other.

    Args:
        tower: blocks without an extra key and value.
        x: embeddings of left-aligned rows, B x S x C.
        layout: of the rows.
    """
    keys, values, visible = [], [], ~layout.padding
    x = layout.pack(x)
    for block in _blocks(tower):
        own = block.self_attn
        query, key, value = own.heads(layout.unpack(own.in_proj(block.layer_norm(x))))
        keys.append(key)
        values.append(value)
        if len(keys) < len(tower):  # nobody reads the states above the last keys and values
            attended = attention(query, key, value, visible[:, None, None], dropout=_dropout(own))
            x = block.finish(x, own.project(attended, layout))
    return Prefix(keys, values, visible)


def behind_prefix(
    tower: Tower,
    x: Tensor,
    prefix: Prefix,
    incremental_state: IncrementalState | None = None,
    layout: RowLayout | None = None,
) -> Tensor:
    """Compute the top state of what comes behind prefixes, from left to right.

    Args:
        tower: the one that read the prefixes.
        x: embeddings of left-aligned rows, B x T x C; with ``incremental_state`` only of new positions.
        prefix: of as many rows.
        incremental_state: fairseq's decoding state, which keeps keys and values behind the prefixes.
        layout: of the rows; None: without padding.

    Returns:
        B x T x C.
    """
    mask = _visible(prefix.visible, x.size(1), cached_length(tower, incremental_state))
    x = x if layout is None else layout.pack(x)
    for block, *before in zip(_blocks(tower), prefix.keys, prefix.values):
        own = block.self_attn
        qkv = own.in_proj(block.layer_norm(x))
        query, *behind = own.heads(qkv if layout is None else layout.unpack(qkv), incremental_state)
        key, value = (torch.cat(parts, dim=2) for parts in zip(before, behind))
        attended = attention(query, key, value, mask, dropout=_dropout(own))
        x = block.finish(x, own.project(attended, layout))
    return x if layout is None else layout.unpack(x)


def cached_length(tower: Tower, incremental_state: IncrementalState | None) -> int:
    """Return the number of positions behind the prefixes that a decoding state has keys and values of."""
    return _blocks(tower)[0].self_attn.cached_length(incremental_state)


def _visible(prefix: Tensor, new: int, seen: int) -> Tensor:
    """Return what new positions behind a prefix and others see: B x 1 x T x (S + seen + T)."""
    causal = torch.ones(new, seen + new, dtype=torch.bool, device=prefix.device).tril(seen)
    rows = prefix[:, None].expand(-1, new, -1)
    return torch.cat([rows, causal.expand(len(prefix), -1, -1)], dim=-1)[:, None]


def _blocks(tower: Tower) -> list[Block]:
    return [block for block in tower if isinstance(block, Block)]


def _dropout(module: CausalSelfAttention) -> float:
    return module.dropout if module.training else 0.0
