"""Named architectures of ``transformer_lmfusion``: fairseq's sizes, each with the paper's four cells."""

from __future__ import annotations

from argparse import Namespace
from typing import Callable

from fairseq.models import register_model_architecture

import lmfusion.fusion.model  # noqa: F401  (registers the model the architectures belong to)
from lmfusion.fusion.config import ELMO, FINETUNE

Architecture = Callable[[Namespace], None]

# fairseq's own sizes under fairseq's own names.
SIZES: dict[str, dict[str, int]] = {
    "": {"embed_dim": 512, "ffn_embed_dim": 2048, "layers": 6, "attention_heads": 8},
    "tiny": {"embed_dim": 64, "ffn_embed_dim": 64, "layers": 2, "attention_heads": 2},
    "iwslt_de_en": {"embed_dim": 512, "ffn_embed_dim": 1024, "layers": 6, "attention_heads": 4},
    "wmt_en_de_big": {"embed_dim": 1024, "ffn_embed_dim": 4096, "layers": 6, "attention_heads": 16},
}
CELLS: dict[str, dict[str, str]] = {
    "lmfusion": {},
    "src_elmo": {"src_fusion": ELMO},
    "src_ft": {"src_fusion": FINETUNE},
    "tgt_elmo": {"tgt_fusion": ELMO},
    "tgt_ft": {"tgt_fusion": FINETUNE},
}


def _architecture(size: dict[str, int], cell: dict[str, str], big: bool) -> Architecture:
    defaults: dict[str, object] = dict(cell)
    for side in ("encoder", "decoder"):
        defaults.update({f"{side}_{name}": value for name, value in size.items()})
    if big:  # as in fairseq's transformer_wmt_en_de_big, with which the released models were trained
        defaults.update(dropout=0.3, attention_dropout=0.1)

    def apply(args: Namespace) -> None:
        for name, value in defaults.items():
            setattr(args, name, getattr(args, name, value))

    return apply


for _cell, _flags in CELLS.items():
    for _size, _dims in SIZES.items():
        register_model_architecture("transformer_lmfusion", f"{_cell}_{_size}" if _size else _cell)(
            _architecture(_dims, _flags, big=_size.endswith("big"))
        )
