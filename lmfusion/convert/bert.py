"""BERT between a folder of Hugging Face (``BertForPreTraining``) and a checkpoint of the family ``bert``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmfusion.convert.converter import Converted
from lmfusion.convert.fairseq_config import checkpoint, training_config
from lmfusion.convert.model_folder import making_model_folder
from lmfusion.errors import InputError
from lmfusion.lm.bert import MASK, BertLM
from lmfusion.lm.huggingface_folder import model_type, read_weights
from lmfusion.lm.huggingface_vocabulary import check_table
from lmfusion.lm.loading import build, load_lm
from lmfusion.lm.transformer.encoder import EPSILON
from lmfusion.lm.transformer.strict_loading import PREFIX
from lmfusion.text.huggingface import ROLES, PieceTokenizer, import_transformers

_MASK_PIECE = "[MASK]"
_FIXED = {"hidden_act": "gelu", "type_vocab_size": 2, "layer_norm_eps": EPSILON}
"""Settings of which the family has one value."""
_SIZES = {
    "decoder_embed_dim": "hidden_size",
    "decoder_ffn_embed_dim": "intermediate_size",
    "decoder_layers": "num_hidden_layers",
    "decoder_attention_heads": "num_attention_heads",
    "max_target_positions": "max_position_embeddings",
    "dropout": "hidden_dropout_prob",
    "attention_dropout": "attention_probs_dropout_prob",
}
_TABLES = {
    "embed.tokens": "bert.embeddings.word_embeddings",
    "embed.positions": "bert.embeddings.position_embeddings",
    "embed.segments": "bert.embeddings.token_type_embeddings",
}
_MODULES = {
    "embed.layer_norm": "bert.embeddings.LayerNorm",
    "pooler": "bert.pooler.dense",
    "masked_head.dense": "cls.predictions.transform.dense",
    "masked_head.layer_norm": "cls.predictions.transform.LayerNorm",
    "pair_head": "cls.seq_relationship",
}
_BLOCK = {
    "self_attn.out_proj": "attention.output.dense",
    "attn_layer_norm": "attention.output.LayerNorm",
    "fc1": "intermediate.dense",
    "fc2": "output.dense",
    "ffn_layer_norm": "output.LayerNorm",
}
_BY_SYMBOL = ("embed.tokens.weight", "masked_head.bias")
"""Weights with a row for each symbol."""


def weight_names(layers: int) -> Iterator[tuple[str, list[str]]]:
    """Yield each weight's name, and those of the weights of transformers that it consists of, one below the other."""
    yield "masked_head.bias", ["cls.predictions.bias"]
    for ours, theirs in _TABLES.items():
        yield f"{ours}.weight", [f"{theirs}.weight"]
    modules = {ours: [theirs] for ours, theirs in _MODULES.items()}
    for number in range(layers):
        theirs = f"bert.encoder.layer.{number}"
        modules[f"layers.{number}.self_attn.in_proj"] = [
            f"{theirs}.attention.self.{part}" for part in ("query", "key", "value")
        ]
        modules |= {f"layers.{number}.{ours}": [f"{theirs}.{part}"] for ours, part in _BLOCK.items()}
    for name, parts in modules.items():
        for kind in ("weight", "bias"):
            yield f"{name}.{kind}", [f"{part}.{kind}" for part in parts]


def from_folder(path: str | Path) -> Converted:
    """Convert a folder of ``BertForPreTraining``; nothing is written.

    The symbols are those of ``lmfusion hf dictionary``, but the mask, which is the last one.

    Args:
        path: of the folder.

    Raises:
        InputError: if it holds another model, or lacks a weight or a tokenizer.
    """
    path = Path(path)
    if (found := model_type(path)) != "bert":
        raise InputError(f"{path} holds {found or 'no model of Hugging Face'}: the family bert is for the type bert.")
    settings, theirs = read_weights(path, "bert", head="ForPreTraining")
    _check_settings(path, settings)
    tokenizer = _with_mask_last(path, PieceTokenizer.from_folder(path))
    ids = torch.tensor(tokenizer.ids)
    check_table(ids, settings["vocab_size"], str(path))
    values = {name: settings[their] for name, their in _SIZES.items()}
    values["tokens_per_sample"] = values["max_target_positions"]
    if not torch.equal(theirs["cls.predictions.decoder.weight"], theirs[f"{_TABLES['embed.tokens']}.weight"]):
        raise InputError(f"{path} has output embeddings of its own, which the family bert ties to the input's.")
    lm = build({"family": "bert", "cpu_bf16": False, **values}, tokenizer.symbols)
    assert isinstance(lm, BertLM)
    ours = {name: torch.cat([theirs[part] for part in parts]) for name, parts in weight_names(lm.num_layers)}
    for name in _BY_SYMBOL:
        ours[name] = ours[name][ids]
    lm.vocabulary.adopt(tokenizer)
    lm.load_state_dict({**ours, **_tables_of(lm)})
    limits = {name: values[name] for name in ("tokens_per_sample", "max_target_positions")}
    config = training_config("bert_lm", {**values, "cpu_bf16": False}, "bert_pretraining", {"data": ".", **limits})
    saved = {PREFIX + name: value for name, value in lm.state_dict().items()}
    return Converted(lm.eval(), checkpoint(config, saved, updates=0))


def _tables_of(lm: BertLM) -> dict[str, Tensor]:
    """Return what is in a model's state dict besides weights."""
    return {f"symbol_table.{name}": value for name, value in lm.vocabulary.state_dict().items()}


def _check_settings(path: Path, settings: dict[str, Any]) -> None:
    for name, value in _FIXED.items():
        if settings.get(name, value) != value:
            raise InputError(
                f"{path} has {name} {settings[name]!r}, and the family bert {value!r}: give the folder itself as the "
                f"language model, which the family huggingface reads."
            )


def _with_mask_last(path: Path, tokenizer: PieceTokenizer) -> PieceTokenizer:
    """Return the tokenizer with the mask's symbol called ``<mask>`` and behind all others."""
    # Folders that to_folder wrote of a BERT without a tokenizer of Hugging Face's call it <mask>.
    found = [piece for piece in (_MASK_PIECE, MASK) if piece in tokenizer.symbols]
    if len(found) != 1:
        raise InputError(f"{path}: its tokenizer has {'both ' if found else 'neither '}{_MASK_PIECE} and {MASK}.")
    (piece,) = found
    place = tokenizer.symbols.index(piece)
    symbols = [symbol for symbol in tokenizer.symbols if symbol != piece]
    ids = [number for at, number in enumerate(tokenizer.ids) if at != place]
    return PieceTokenizer(
        tokenizer.tokenizer, [*symbols, MASK], [*ids, tokenizer.ids[place]], tokenizer.opening, tokenizer.closes
    )


def to_folder(path: str | Path, out: str | Path) -> None:
    """Write a checkpoint of the family ``bert`` as a folder of ``BertForPreTraining`` with a tokenizer.

    A model that was not converted has no tokenizer of Hugging Face's: it gets one that takes symbols between spaces.

    Args:
        path: of the checkpoint.
        out: folder to write; it must not exist.

    Raises:
        InputError: if the checkpoint is of another family, or the folder exists.
    """
    lm, out, transformers = load_lm(path), Path(out), import_transformers()
    if not isinstance(lm, BertLM):
        raise InputError(f"{path} is a {lm.title}: only models of the family bert are written as folders.")
    if out.exists():
        raise InputError(f"{out} exists: give the name of a new folder.")
    ids = lm.vocabulary.model_ids
    rows = int(ids.max()) + 1
    wrapped = _their_tokenizer(lm, transformers)
    settings = {their: lm.config[name] for name, their in _SIZES.items()}
    config = transformers.BertConfig(vocab_size=rows, pad_token_id=wrapped.pad_token_id, **settings, **_FIXED)
    model = transformers.BertForPreTraining(config)
    model.load_state_dict(_their_weights(lm, ids, rows))
    with making_model_folder(transformers, out) as work:
        model.save_pretrained(work)
        wrapped.save_pretrained(work)


def _their_weights(lm: BertLM, ids: Tensor, rows: int) -> dict[str, Tensor]:
    ours = lm.state_dict()
    theirs: dict[str, Tensor] = {}
    for name, parts in weight_names(lm.num_layers):
        weight = ours[name]
        if name in _BY_SYMBOL:
            weight = weight.new_zeros(rows, *weight.shape[1:]).index_copy_(0, ids, weight)
        theirs |= dict(zip(parts, weight.chunk(len(parts)), strict=True))
    theirs["cls.predictions.decoder.weight"] = theirs[f"{_TABLES['embed.tokens']}.weight"]
    theirs["cls.predictions.decoder.bias"] = theirs["cls.predictions.bias"]
    return theirs


def _their_tokenizer(lm: BertLM, transformers: Any) -> Any:
    """Return the tokenizer of a converted model, or one that takes symbols between spaces."""
    vocabulary = lm.vocabulary
    tokenizer = vocabulary.tokenizer.tokenizer if vocabulary.tokenizer else _by_symbol(lm.symbols)
    names = ("cls_token", "pad_token", "sep_token", "unk_token", "mask_token")
    numbers = [int(vocabulary.model_ids[vocabulary.index[symbol]]) for symbol in (*ROLES, MASK)]
    pieces = {name: tokenizer.id_to_token(number) for name, number in zip(names, numbers)}
    inputs = ["input_ids", "token_type_ids", "attention_mask"]
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_input_names=inputs, **pieces)


def _by_symbol(symbols: list[str]) -> Any:
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    tokenizer = Tokenizer(models.WordLevel({symbol: number for number, symbol in enumerate(symbols)}, ROLES[3]))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    begin, end = ROLES[0], ROLES[2]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{begin} $A {end}",
        pair=f"{begin} $A {end} $B:1 {end}:1",
        special_tokens=[(symbol, symbols.index(symbol)) for symbol in (begin, end)],
    )
    return tokenizer
