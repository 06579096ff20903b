"""Tiny sequence-to-sequence models through the real model class, and the LM files they start from."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import MISSING
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
from fairseq.data import Dictionary
from torch import Tensor

from lmfusion.consumers.lstm_config import LSTMFusionConfig
from lmfusion.consumers.prefix_lm_config import PrefixLMConfig
from lmfusion.fusion.config import FusionConfig
from lmfusion.fusion.interface import FUSIONS, Fusion, Side
from lmfusion.fusion.model import TransformerLMFusion

SIZES = {"embed_dim": 8, "ffn_embed_dim": 12, "layers": 1, "attention_heads": 2}
TARGET_WORDS = ["eins", "zwei", "drei", "vier", "fünf", "sechs"]


@pytest.fixture
def target_dictionary() -> Dictionary:
    """10 symbols: another language than the source's."""
    dictionary = Dictionary()
    for word in TARGET_WORDS:
        dictionary.add_symbol(word)
    return dictionary


@pytest.fixture
def task(dictionary: Dictionary, target_dictionary: Dictionary) -> SimpleNamespace:
    """What a model asks of fairseq's translation task."""
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=target_dictionary)


def plain_flags(config: Any, **flags: Any) -> Namespace:
    """A model's flags as fairseq's command line makes them: the defaults, and these."""
    values = {
        name: spec.default if spec.default_factory is MISSING else spec.default_factory()
        for name, spec in config.__dataclass_fields__.items()
        if not name.startswith("_")
    }
    assert set(flags) <= set(values)
    return Namespace(**{**values, **flags})


@pytest.fixture
def make_cfg() -> Callable[..., Namespace]:
    """All flags at their defaults, tiny sizes without dropout, and these flags."""
    sizes = {f"{stack}_{name}": size for stack in ("encoder", "decoder") for name, size in SIZES.items()}
    tiny = {**sizes, "decoder_input_dim": 8, "decoder_output_dim": 8, "dropout": 0.0}
    return lambda **flags: plain_flags(FusionConfig, **{**tiny, **flags})


@pytest.fixture
def make_lstm_cfg() -> Callable[..., Namespace]:
    """The flags of ``lstm_lmfusion``: the defaults, tiny sizes without dropout, and these flags."""
    sizes = {"encoder_embed_dim": 8, "decoder_embed_dim": 8, "decoder_out_embed_dim": 8, "dropout": 0.0}
    limits = {"max_source_positions": 1024, "max_target_positions": 1024}
    return lambda **flags: plain_flags(LSTMFusionConfig, **{**sizes, **limits, **flags})


@pytest.fixture
def make_prefix_cfg() -> Callable[..., Namespace]:
    """The flags of ``prefix_lm``: the defaults, tiny sizes without dropout, and these flags."""
    tiny = {"decoder_embed_dim": 16, "decoder_ffn_embed_dim": 24, "decoder_layers": 3, "decoder_attention_heads": 2}
    tiny |= {"max_source_positions": 1024, "max_target_positions": 1024}
    dropouts = dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), 0.0)
    return lambda **flags: plain_flags(PrefixLMConfig, **{**tiny, **dropouts, **flags})


@pytest.fixture
def make_fusion() -> Callable[..., Fusion]:
    """An integration by name, of a side of some width: ``make_fusion("elmo", lm, 8, elmo_dropout=0.2)``."""

    def make(name: str, lm: Any, width: int = 8, **flags: Any) -> Fusion:
        side = Side("src", "source", "encoder", lm.symbols, width, heads=2)
        return FUSIONS[name](lm, side, FUSIONS[name].Config(**flags))

    return make


@pytest.fixture
def src_lm(make_cloze: Any, save_lm: Any) -> Path:
    """A cloze LM of the source language (C 16, C' 32)."""
    path: Path = save_lm(make_cloze(), "source_lm.pt")
    return path


@pytest.fixture
def tgt_lm(make_causal: Any, save_lm: Any, target_dictionary: Dictionary, shake: Any) -> Path:
    """A causal LM of the target language (C 16)."""
    template = make_causal()
    path: Path = save_lm(shake(type(template)(template.config, target_dictionary)), "target_lm.pt")
    return path


@pytest.fixture
def make_cell(make_cfg: Any, src_lm: Path, tgt_lm: Path) -> Callable[..., Namespace]:
    """Flags of one cell of the table: ``make_cell("elmo", "none", share_decoder_input_output_embed=True)``."""

    def make(src: str, tgt: str, **flags: Any) -> Namespace:
        chosen: dict[str, Any] = {"src_fusion": src, "tgt_fusion": tgt}
        chosen.update({"src_lm": str(src_lm)} if src != "none" else {})
        chosen.update({"tgt_lm": str(tgt_lm)} if tgt != "none" else {})
        cfg: Namespace = make_cfg(**chosen, **flags)
        return cfg

    return make


@pytest.fixture
def make_model(make_cell: Any, task: Any) -> Callable[..., TransformerLMFusion]:
    """A model of one cell, in eval mode: ``make_model("elmo", "finetune")``."""

    def make(src: str, tgt: str, **flags: Any) -> TransformerLMFusion:
        model = TransformerLMFusion.build_model(make_cell(src, tgt, **flags), task)
        return model.eval()

    return make


@pytest.fixture
def net_input() -> dict[str, Tensor]:
    """Three pairs as fairseq's translation task batches them: sources left-padded, targets right-padded."""
    return {
        "src_tokens": torch.tensor([[5, 9, 4, 11, 2], [1, 6, 7, 8, 2], [1, 1, 1, 21, 2]]),
        "src_lengths": torch.tensor([5, 4, 2]),
        "prev_output_tokens": torch.tensor([[2, 5, 8, 4, 9, 6], [2, 4, 4, 7, 1, 1], [2, 9, 1, 1, 1, 1]]),
    }
