"""The rows of the paper's tables, as models to measure."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from models import Sizes, fairseq_transformer, seq2seq

from lmfusion.fusion.config import ELMO, FINETUNE, NONE

# isort: split

from fairseq.models.transformer import TransformerModelBase


@dataclass(frozen=True)
class Row:
    """A strategy: what is done on each side, and further flags."""

    name: str
    src: str = NONE
    tgt: str = NONE
    flags: dict[str, Any] = field(default_factory=dict)

    def build(self, sizes: Sizes, **flags: Any) -> TransformerModelBase:
        """A model of it with random weights, always the same."""
        torch.manual_seed(1)
        return seq2seq(sizes, self.src, self.tgt, **{**self.flags, **flags})


@dataclass(frozen=True)
class FairseqRow(Row):
    """The baseline as fairseq has it."""

    def build(self, sizes: Sizes, **flags: Any) -> TransformerModelBase:
        """As the others."""
        torch.manual_seed(1)
        return fairseq_transformer(sizes, **flags)


SHDEMB = {"share_decoder_input_output_embed": True}
ROWS = (
    Row("baseline"),
    Row("SHARED", flags={"share_all_embeddings": True}),
    Row("SRC-ELMO", src=ELMO),
    Row("SRC-FT", src=FINETUNE),
    Row("TGT-ELMO", tgt=ELMO),
    Row("TGT-FT", tgt=FINETUNE),
    Row("SRC-ELMO+SHDEMB", src=ELMO, flags=SHDEMB),
)

BASELINE = "baseline"


def check_names(parser: argparse.ArgumentParser, given: list[str] | None, names: Iterable[str]) -> None:
    """End with the names there are where ``--rows`` has another."""
    unknown = sorted(set(given or ()) - set(names))
    if unknown:
        parser.error(f"--rows {' '.join(map(repr, unknown))}: there are {', '.join(map(repr, names))}.")


BIG = Sizes(
    vocabulary=37004,
    channels=1024,
    ffn=4096,
    layers=6,
    heads=16,
    lm_channels=1024,
    lm_ffn=4096,
    lm_layers=12,
    lm_heads=16,
)
"""The paper's (SPEC sections 1 and 2)."""

SMALL = replace(BIG, vocabulary=7400, channels=256, ffn=1024, heads=4, lm_channels=256, lm_ffn=1024, lm_heads=4)
"""The same with a quarter of the channels and a fifth of the words."""

SIZES = {"big": BIG, "small": SMALL}
