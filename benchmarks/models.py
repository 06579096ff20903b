"""Models of any size for the benchmarks: random weights, real classes, nothing read from the network."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from dataclasses import MISSING, dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary

from lmfusion.fusion.config import NONE, FusionConfig
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.config import CausalLMConfig, ClozeLMConfig, plain_config
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.loading import build as build_lm

FAMILIES = {"src": ("bi_transformer_lm", ClozeLMConfig), "tgt": ("uni_transformer_lm", CausalLMConfig)}


@dataclass(frozen=True)
class Sizes:
    """Of a sequence-to-sequence model and of the language models in it."""

    vocabulary: int
    channels: int
    ffn: int
    layers: int
    heads: int
    lm_channels: int
    lm_ffn: int
    lm_layers: int
    lm_heads: int
    max_positions: int = 1024


def dictionary_of_size(size: int) -> Dictionary:
    """fairseq's special symbols and made-up words."""
    dictionary = Dictionary()
    for number in range(size - len(dictionary)):
        dictionary.add_symbol(f"word{number}")
    return dictionary


def language_model(side: str, sizes: Sizes, dictionary: Dictionary) -> PretrainedLM:
    """A cloze LM for ``"src"``, a causal LM for ``"tgt"``."""
    family, config = FAMILIES[side]
    flags = {name: spec.default for name, spec in config.__dataclass_fields__.items()}
    flags.update(
        decoder_embed_dim=sizes.lm_channels,
        decoder_ffn_embed_dim=sizes.lm_ffn,
        decoder_layers=sizes.lm_layers,
        decoder_attention_heads=sizes.lm_heads,
        share_decoder_input_output_embed=True,
        max_target_positions=sizes.max_positions,
    )
    description = {**plain_config(Namespace(**flags), config), "family": family}
    if side == "src":
        description["targets"] = ["self"]
    return build_lm(description, dictionary)


def _save(lm: PretrainedLM, side: str, path: Path) -> Path:
    model = {"_name": FAMILIES[side][0], **lm.config}
    cfg = {"model": model, "task": {"self_target": side == "src"}}
    torch.save({"cfg": cfg, "model": {f"decoder.{name}": value for name, value in lm.state_dict().items()}}, path)
    return path


def seq2seq(sizes: Sizes, src: str = NONE, tgt: str = NONE, **flags: Any) -> TransformerLMFusion:
    """A model of one cell of the paper's table.

    Args:
        sizes: of everything.
        src, tgt: what is done with a language model on each side.
        flags: further ones of ``transformer_lmfusion``.
    """
    dictionary = dictionary_of_size(sizes.vocabulary)
    values = {
        name: spec.default if spec.default_factory is MISSING else spec.default_factory()
        for name, spec in FusionConfig.__dataclass_fields__.items()
    }
    shape = {"embed_dim": sizes.channels, "ffn_embed_dim": sizes.ffn, "layers": sizes.layers}
    shape["attention_heads"] = sizes.heads
    for side in ("encoder", "decoder"):
        values.update({f"{side}_{name}": size for name, size in shape.items()})
    values.update(decoder_input_dim=sizes.channels, decoder_output_dim=sizes.channels, dropout=0.0)
    values.update(max_source_positions=sizes.max_positions, max_target_positions=sizes.max_positions, **flags)
    with tempfile.TemporaryDirectory() as folder:
        for side, fusion in (("src", src), ("tgt", tgt)):
            if fusion != NONE:
                path = _save(language_model(side, sizes, dictionary), side, Path(folder) / f"{side}.pt")
                values.update({f"{side}_lm": str(path), f"{side}_fusion": fusion})
        task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
        return TransformerLMFusion.build_model(Namespace(**values), task)
