"""A causal language model as a folder of Hugging Face: transformers' OPT, which is the same function.

OPT is a left-to-right transformer with layer norms before its sub-blocks, ReLU, biases and a table of positions that
begins at row 2, as fairseq numbers them. Without its last layer norm (``_remove_final_layer_norm``, a setting that
transformers keeps for the first OPTs) it is the tower of :class:`lmfusion.lm.causal.CausalLM`: the factor sqrt(C) goes
into its embeddings and the sinusoids into its table. Dropout alone differs, when it is trained further: OPT has none
on the embeddings and none behind the ReLU.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmfusion.convert.model_folder import making_model_folder
from lmfusion.convert.piece_tokenizer import piece_tokenizer
from lmfusion.errors import InputError
from lmfusion.lm.causal import CausalLM
from lmfusion.lm.loading import load_lm
from lmfusion.lm.vocabulary import EOS, PAD, UNK
from lmfusion.text.import_transformers import import_transformers

_OFFSET = 2
"""Rows in front of the first position in OPT's table, as in fairseq's: behind the padding symbol, which has index 1."""
_BLOCK = {
    "layer_norm": "self_attn_layer_norm",
    "self_attn.out_proj": "self_attn.out_proj",
    "ffn.layer_norm": "final_layer_norm",
    "ffn.fc1": "fc1",
    "ffn.fc2": "fc2",
}
_CARD = """---
library_name: transformers
{licence}---

# A causal language model, trained with lmfusion

`AutoModelForCausalLM.from_pretrained(FOLDER)`: {layers} layers of {channels} channels, {symbols:,} symbols, sentences
of up to {positions} tokens. Every sentence begins with `</s>`, which the tokenizer puts there. {text}

Its architecture is transformers' OPT without the last layer norm; the weights are not those of any OPT.
"""


def to_folder(path: str | Path, out: str | Path, *, licence: str | None = None) -> None:
    """Write a checkpoint of the family ``causal`` as a folder of ``OPTForCausalLM`` with a tokenizer and a model card.

    Args:
        path: of the checkpoint.
        out: folder to write; it must not exist.
        licence: for the card's head, as Hugging Face names it (``mit``, ``cc-by-4.0``).

    Raises:
        InputError: if the checkpoint is of another family, or the folder exists.
    """
    lm, out, transformers = load_lm(path), Path(out), import_transformers()
    if not isinstance(lm, CausalLM):
        raise InputError(f"{path} is a {lm.title}: only causal language models (uni_transformer_lm) are written so.")
    if out.exists():
        raise InputError(f"{out} exists: give the name of a new folder.")
    tokenizer, about = piece_tokenizer(lm.vocabulary)
    model = transformers.OPTForCausalLM(transformers.OPTConfig(**_settings(lm)))
    model.load_state_dict(dict(_weights(lm)))
    names = {"bos_token": EOS, "eos_token": EOS, "pad_token": PAD, "unk_token": UNK}
    wrapped = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)
    sizes = {"layers": lm.num_layers, "channels": lm.embed_dim, "symbols": len(lm.symbols)}
    head = f"license: {licence}\n" if licence else ""
    card = _CARD.format(licence=head, positions=lm.max_positions(), text=about, **sizes)
    with making_model_folder(transformers, out) as work:
        model.save_pretrained(work)
        wrapped.save_pretrained(work)
        (work / "README.md").write_text(card, encoding="utf-8")


def _settings(lm: CausalLM) -> dict[str, Any]:
    config, index = lm.config, lm.vocabulary.index
    return {
        "vocab_size": len(lm.symbols),
        "hidden_size": lm.embed_dim,
        "word_embed_proj_dim": lm.embed_dim,
        "ffn_dim": config["decoder_ffn_embed_dim"],
        "num_hidden_layers": lm.num_layers,
        "num_attention_heads": config["decoder_attention_heads"],
        "max_position_embeddings": _positions(lm),
        "dropout": config["dropout"],
        "attention_dropout": config["attention_dropout"],
        "activation_function": "relu",
        "do_layer_norm_before": True,
        "_remove_final_layer_norm": True,
        "tie_word_embeddings": False,  # the output's lack the factor
        "bos_token_id": index[EOS],
        "eos_token_id": index[EOS],
        "pad_token_id": index[PAD],
    }


def _positions(lm: CausalLM) -> int:
    """Return the number of positions: </s> stands in front of a sentence, and behind it."""
    return lm.max_positions() + 2


def _weights(lm: CausalLM) -> Iterator[tuple[str, Tensor]]:
    """Yield the weights of ``OPTForCausalLM`` by name."""
    decoder, ours = "model.decoder", lm.state_dict()
    yield f"{decoder}.embed_tokens.weight", lm.embed.scale * lm.embed.tokens.weight
    padding = torch.full((1, _positions(lm)), lm.padding_idx)
    table = lm.embed(padding)[0] - lm.embed.scale * lm.embed.tokens.weight[lm.padding_idx]
    yield f"{decoder}.embed_positions.weight", torch.cat([torch.zeros(_OFFSET, lm.embed_dim), table])
    yield "lm_head.weight", lm.embed.tokens.weight if lm.output_weight is None else lm.output_weight
    for layer in range(lm.num_layers):
        for kind in ("weight", "bias"):
            for name, their in _BLOCK.items():
                yield f"{decoder}.layers.{layer}.{their}.{kind}", ours[f"layers.{layer}.{name}.{kind}"]
            parts = ours[f"layers.{layer}.self_attn.in_proj.{kind}"].chunk(3)
            for name, part in zip("qkv", parts, strict=True):
                yield f"{decoder}.layers.{layer}.self_attn.{name}_proj.{kind}", part
