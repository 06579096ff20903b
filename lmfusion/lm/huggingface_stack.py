"""Encoders of transformers that are built as BERT is, as stacks that fairseq's encoder can start from."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.stack import Stack, Weights, under

BUILT_AS_BERT = ("bert", "roberta", "xlm-roberta", "camembert")
"""Model types whose modules have BERT's names."""
_ACTIVATIONS = {"gelu": "gelu", "relu": "relu", "gelu_new": "gelu_accurate", "gelu_pytorch_tanh": "gelu_accurate"}
"""fairseq's names of what transformers calls ``hidden_act``."""
_MODULES = {
    "self_attn.q_proj": "attention.self.query",
    "self_attn.k_proj": "attention.self.key",
    "self_attn.v_proj": "attention.self.value",
    "self_attn.out_proj": "attention.output.dense",
    "self_attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "final_layer_norm": "output.LayerNorm",
}
"""Modules of a layer by fairseq's names."""


def bert_stack(model_type: str, model: Any, model_ids: Tensor, positions: int) -> Stack:
    """Return the stack of an encoder; segments are gone, for a source is one: its embedding is in the positions.

    Args:
        model_type: as in :data:`lmfusion.lm.huggingface_models.KINDS`.
        model: of transformers.
        model_ids: the model's ids of a dictionary's symbols, V.
        positions: number of positions that sentences may have, the last of the table.

    Raises:
        InputError: if fairseq's encoder cannot compute the same.
    """
    about, parts = model.config, model.embeddings if model_type in BUILT_AS_BERT else None
    activation = _ACTIVATIONS.get(str(about.hidden_act)) if parts is not None else None
    relative = getattr(about, "position_embedding_type", "absolute") != "absolute"
    if parts is None or activation is None or relative:
        raise InputError(
            f"this {model_type} cannot start an encoder of fairseq's: give one of {', '.join(BUILT_AS_BERT)} with "
            f"absolute positions and one of the activations {', '.join(_ACTIVATIONS)}."
        )
    with torch.no_grad():
        table = parts.position_embeddings.weight[-positions:] + parts.token_type_embeddings.weight[0]
        tokens = parts.word_embeddings.weight[model_ids]
    return Stack(
        embed_dim=about.hidden_size,
        ffn_dim=about.intermediate_size,
        heads=about.num_attention_heads,
        tokens=tokens,
        layers=[_layer(layer) for layer in model.encoder.layer],
        positions=table,
        normalize_before=False,
        activation=activation,
        scale_embedding=False,
        embedding_norm=parts.LayerNorm.state_dict(),
        epsilon=about.layer_norm_eps,
    )


def _layer(layer: Any) -> Weights:
    return {
        name: weight
        for own, theirs in _MODULES.items()
        for name, weight in under(own, layer.get_submodule(theirs).state_dict()).items()
    }
