"""Models of any size for the benchmarks: random weights, real classes, nothing read from a file or the network."""

from __future__ import annotations

import json
from argparse import Namespace
from dataclasses import MISSING, dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqLanguageModel
from fairseq.models.transformer import TransformerModel
from fairseq.models.transformer_lm import TransformerLanguageModel, TransformerLanguageModelConfig

import lmfusion
from lmfusion.fusion.config import NONE, FusionConfig
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.causal import UniTransformerLanguageModel
from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.lm.loading import describe
from lmfusion.lm.transformer.config import CausalLMConfig, ClozeLMConfig
from lmfusion.lm.transformer.layers import Block

lmfusion.install()  # registers models and criterions

SOURCE, TARGET = "src", "tgt"


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


@cache
def dictionary_of_size(size: int) -> Dictionary:
    """fairseq's special symbols and made-up words."""
    dictionary = Dictionary()
    for number in range(size - len(dictionary)):
        dictionary.add_symbol(f"word{number}")
    return dictionary


def task_of(sizes: Sizes, **settings: Any) -> Any:
    """What fairseq's models and criterions ask a task for."""
    dictionary = dictionary_of_size(sizes.vocabulary)
    return SimpleNamespace(
        source_dictionary=dictionary, target_dictionary=dictionary, dictionary=dictionary, **settings
    )


def defaults(config: Any) -> dict[str, Any]:
    """The flags of a model by name, as they are where none is given."""
    return {
        name: spec.default if spec.default_factory is MISSING else spec.default_factory()
        for name, spec in config.__dataclass_fields__.items()
    }


def language_model(side: str, sizes: Sizes) -> FairseqLanguageModel:
    """lmfusion's cloze LM for the source side, its causal LM for the target side, as fairseq trains them."""
    values = defaults(ClozeLMConfig if side == SOURCE else CausalLMConfig)
    values.update(
        decoder_embed_dim=sizes.lm_channels,
        decoder_ffn_embed_dim=sizes.lm_ffn,
        decoder_layers=sizes.lm_layers,
        decoder_attention_heads=sizes.lm_heads,
        share_decoder_input_output_embed=True,
        max_target_positions=sizes.max_positions,
    )
    family = BiTransformerLanguageModel if side == SOURCE else UniTransformerLanguageModel
    return family.build_model(Namespace(**values), task_of(sizes, targets=["self" if side == SOURCE else "future"]))


def compile_blocks(model: torch.nn.Module, backend: str) -> None:
    """Let a model's transformer blocks be compiled when they are first called."""
    for block in model.modules():
        if isinstance(block, Block):
            block.compile(backend=backend)


def fairseq_language_model(sizes: Sizes, blocks: int) -> TransformerLanguageModel:
    """fairseq's own causal LM with tied embeddings and this many blocks, dropout as in lmfusion's."""
    cfg = TransformerLanguageModelConfig(
        decoder_embed_dim=sizes.lm_channels,
        decoder_output_dim=sizes.lm_channels,
        decoder_input_dim=sizes.lm_channels,
        decoder_ffn_embed_dim=sizes.lm_ffn,
        decoder_layers=blocks,
        decoder_attention_heads=sizes.lm_heads,
        decoder_normalize_before=True,
        share_decoder_input_output_embed=True,
        tokens_per_sample=sizes.max_positions,
        max_target_positions=sizes.max_positions,
        dropout=0.1,
        attention_dropout=0.1,
        activation_dropout=0.05,
        tpu=False,
        add_bos_token=False,
    )
    return TransformerLanguageModel.build_model(cfg, task_of(sizes))


def _namespace(sizes: Sizes, **flags: Any) -> Namespace:
    """Flags of ``transformer_lmfusion``: these sizes, no dropout, and further ones."""
    values = defaults(FusionConfig)
    shape = {"embed_dim": sizes.channels, "ffn_embed_dim": sizes.ffn, "layers": sizes.layers}
    shape["attention_heads"] = sizes.heads
    for side in ("encoder", "decoder"):
        values.update({f"{side}_{name}": size for name, size in shape.items()})
    values.update(decoder_input_dim=sizes.channels, decoder_output_dim=sizes.channels, dropout=0.0)
    values.update(max_source_positions=sizes.max_positions, max_target_positions=sizes.max_positions, **flags)
    return Namespace(**values)


def fairseq_transformer(sizes: Sizes, **flags: Any) -> TransformerModel:
    """fairseq's own transformer of the shape of :func:`seq2seq`'s."""
    return TransformerModel.build_model(_namespace(sizes, **flags), task_of(sizes))


def seq2seq(sizes: Sizes, src: str = NONE, tgt: str = NONE, **flags: Any) -> TransformerLMFusion:
    """A model of one cell of the paper's table, built as from a checkpoint: by a description of the LMs in it.

    Args:
        sizes: of everything.
        src, tgt: what is done with a language model on each side.
        flags: further ones of ``transformer_lmfusion``.
    """
    cfg = _namespace(sizes, **flags)
    for side, fusion in ((SOURCE, src), (TARGET, tgt)):
        if fusion != NONE:
            with torch.device("meta"):
                description = {"lm": describe(language_model(side, sizes).decoder), "fingerprint": "random weights"}
            given = {"lm": "made up", "fusion": fusion, "lm_config": json.dumps(description)}
            vars(cfg).update({f"{side}_{name}": value for name, value in given.items()})
    model = TransformerLMFusion.build_model(cfg, task_of(sizes))
    model.load_state_dict(model.state_dict())  # a model from a description is of no use before it got its weights
    return model
