"""A tiny BERT with heads, built as fairseq builds it, in process."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from lmfusion.consumers.head_model import HeadsConfig, HeadsModel
from lmfusion.consumers.heads import HeadSpec
from lmfusion.lm.loading import build, describe

SIZES = {
    "decoder_embed_dim": 16,
    "decoder_ffn_embed_dim": 24,
    "decoder_layers": 2,
    "decoder_attention_heads": 2,
    "tokens_per_sample": 30,
    "max_target_positions": 30,
}
SYMBOLS = ["<s>", "<pad>", "</s>", "<unk>", *(f"w{number}" for number in range(20)), "<mask>"]
SPECS = [
    HeadSpec("mood", "class", None, ("bad", "fair", "good")),
    HeadSpec("same", "binary", "concat", ("0", "1")),
    HeadSpec("near", "score", "cos"),
    HeadSpec("words", "tags", None, ("N", "V")),
]


def flags(**given: Any) -> Namespace:
    """The flags of ``lmfusion_heads``: the defaults, but for these."""
    known = {name: spec.default for name, spec in HeadsConfig.__dataclass_fields__.items() if not name.startswith("_")}
    return Namespace(**{**known, **given})


@pytest.fixture
def make_flags() -> Callable[..., Namespace]:
    """The flags of a model with heads: ``make_flags(src_fusion="elmo")``."""
    return flags


@pytest.fixture
def make_heads(shake: Any) -> Callable[..., HeadsModel]:
    """``make_heads(specs, src_fusion="elmo", dropout=0.1)``: all weights random, in eval mode."""

    def make(specs: list[HeadSpec] | None = None, dropout: float = 0.0, **given: Any) -> HeadsModel:
        lm = shake(build({"family": "bert", **SIZES, "dropout": dropout, "attention_dropout": dropout}, SYMBOLS))
        described = {"lm": describe(lm, []), "states": lm.state_names, "fingerprint": "of the tests"}
        cfg = flags(**{"src_fusion": "finetune", "head_dropout": 0.0, **given}, src_lm_config=json.dumps(described))
        task = SimpleNamespace(head_specs=lambda: specs or SPECS)
        made: HeadsModel = shake(HeadsModel.build_model(cfg, task)).eval()
        return made

    return make
