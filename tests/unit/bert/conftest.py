"""Folders of BERT as transformers writes them: tiny, with random weights and a WordPiece tokenizer."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.convert.fairseq_config import checkpoint, training_config
from lmfusion.lm.bert import BertLM
from lmfusion.lm.loading import build

SIZES = {
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
}
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(20)), "al.le@@", "<mask>"]
MODELS = runpy.run_path(str(Path(__file__).resolve().parents[2] / "hf_models.py"))


@pytest.fixture
def make_folder(tmp_path: Path) -> Callable[..., Path]:
    """A folder with both heads, or another: ``make_folder(head="AutoModelForMaskedLM")``."""
    pytest.importorskip("transformers")

    def make(head: str = "AutoModelForPreTraining", **settings: Any) -> Path:
        MODELS["save_model"]("bert", tmp_path / "bert", head=head, **settings)
        return tmp_path / "bert"

    return make


@pytest.fixture
def make_bert(shake: Callable[..., Any]) -> Callable[..., BertLM]:
    """A tiny BERT in eval mode whose weights and biases are all random."""

    def make(words: list[str] = SYMBOLS[4:-1], **changes: Any) -> BertLM:
        lm = build({"family": "bert", **SIZES, **changes}, [*SYMBOLS[:4], *words, SYMBOLS[-1]])
        assert isinstance(lm, BertLM)
        made: BertLM = shake(lm).eval()
        return made

    return make


@pytest.fixture
def save_bert(tmp_path: Path) -> Callable[[BertLM], Path]:
    """Write a checkpoint of a BERT as fairseq-train does, without an optimizer."""

    def save(lm: BertLM) -> Path:
        lmfusion.install()
        task = {"data": ".", "tokens_per_sample": 30, "max_target_positions": 30}
        config = training_config("bert_lm", dict(lm.config), "bert_pretraining", task)
        weights = {f"decoder.{name}": value for name, value in lm.state_dict().items()}
        torch.save(checkpoint(config, weights, updates=1), tmp_path / "bert.pt")
        return tmp_path / "bert.pt"

    return save
