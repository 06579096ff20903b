"""The towers of our own transformer language models as stacks that fairseq's encoder and decoder can start from."""

from __future__ import annotations

from torch import nn

from lmfusion.lm.stack import Stack, Weights, split_projection, under
from lmfusion.lm.transformer.attention import LEARNED_BIAS_KV, ZERO_BIAS_KV
from lmfusion.lm.transformer.base import TransformerLM
from lmfusion.lm.transformer.layers import Block, Tower


def tower_stack(lm: TransformerLM, tower: Tower, final_norm: nn.Module | None = None) -> Stack:
    """Return the stack of one tower.

    Args:
        lm: its language model, for embeddings and sizes.
        tower: of pre-norm blocks.
        final_norm: a layer norm behind the last block, if there is one.
    """
    blocks = [block for block in tower if isinstance(block, Block)]
    positions = lm.embed.learned_positions
    return Stack(
        embed_dim=lm.embed_dim,
        ffn_dim=blocks[0].ffn.fc1.out_features,
        heads=blocks[0].self_attn.num_heads,
        tokens=lm.embed.tokens.weight,
        layers=[_layer(block) for block in blocks],
        output=lm.output_weight,
        positions=None if positions is None else positions.weight,
        has_positions=lm.embed.has_positions,
        zero_attention=blocks[0].self_attn.bias_kv == ZERO_BIAS_KV,
        epsilon=blocks[0].layer_norm.eps,
        final_norm={} if final_norm is None else final_norm.state_dict(),
    )


def _layer(block: Block) -> Weights:
    """Return a block's weights by fairseq's names."""
    attention = block.self_attn
    weights = {
        **split_projection(attention.in_proj.state_dict()),
        **under("self_attn.out_proj", attention.out_proj.state_dict()),
        **under("self_attn_layer_norm", block.layer_norm.state_dict()),
        **under("final_layer_norm", block.ffn.layer_norm.state_dict()),
        **under("fc1", block.ffn.fc1.state_dict()),
        **under("fc2", block.ffn.fc2.state_dict()),
    }
    if attention.bias_kv == LEARNED_BIAS_KV:  # fairseq keeps both as 1 x 1 x C
        weights |= {f"self_attn.bias_{letter}": getattr(attention, f"bias_{letter}")[None, None] for letter in "kv"}
    return weights
