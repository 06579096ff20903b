"""A fairseq encoder that starts from a model of transformers computes what that does."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import MISSING
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.fusion.config import FusionConfig
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.loading import load_lm
from lmfusion.lm.symbols import dictionary_of


def build(folder: Path, symbols: list[str]) -> TransformerLMFusion:
    values = {
        name: spec.default if spec.default_factory is MISSING else spec.default_factory()
        for name, spec in FusionConfig.__dataclass_fields__.items()
    }
    values.update(src_fusion="initialise", src_lm=str(folder), decoder_embed_dim=8, decoder_ffn_embed_dim=8)
    values.update(decoder_layers=1, decoder_attention_heads=2, decoder_input_dim=8, decoder_output_dim=8)
    dictionary = dictionary_of(symbols)
    task = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    return TransformerLMFusion.build_model(Namespace(**values), task).eval()


@pytest.mark.parametrize("model_type", ["bert", "roberta"])
@torch.no_grad()
def test_the_encoder_is_the_model(saved_models: Callable[[str], Path], model_type: str) -> None:
    """On the same row of words: without what the model's tokenizer puts in front."""
    lm = load_lm(saved_models(model_type))
    rows = torch.tensor([[5, 9, 4, 7, 2], [6, 7, 2, 1, 1]])
    encoder: Any = build(saved_models(model_type), lm.symbols).encoder
    found = encoder(rows, torch.tensor([5, 3]))["encoder_out"][0].transpose(0, 1)
    words = rows.ne(1)
    torch.testing.assert_close(found[words], lm.top_state(rows)[words], rtol=0, atol=2e-5)
    assert encoder.max_positions() >= lm.max_positions()


def test_other_kinds_are_refused(saved_models: Callable[[str], Path]) -> None:
    folder = saved_models("deberta")
    with pytest.raises(InputError, match="cannot start an encoder"):
        build(folder, load_lm(folder).symbols)
