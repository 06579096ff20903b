"""Flags of ``transformer_lmfusion``: fairseq's transformer, flat, and what is ours on top.

Flat, because fairseq fills nested fields neither from flat flags nor consistently from Hydra.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, make_dataclass
from typing import Any, Optional

from fairseq.dataclass import ChoiceEnum, FairseqDataclass
from fairseq.models.transformer.transformer_config import (
    DecoderConfig,
    EncDecBaseConfig,
    QuantNoiseConfig,
    TransformerConfig,
)
from omegaconf import II

from lmfusion.lm.precision import CPU_BF16_HELP

NONE, ELMO, FINETUNE = "none", "elmo", "finetune"
SIDES = ("src", "tgt")
FusionChoice = ChoiceEnum([NONE, ELMO, FINETUNE])
AUTO, OWN = "auto", "own"
PositionChoice = ChoiceEnum([AUTO, OWN, NONE])

_NESTED = {"encoder": EncDecBaseConfig, "decoder": DecoderConfig, "quant_noise": QuantNoiseConfig}


def _flat_fields() -> list[tuple[str, Any, Any]]:
    """fairseq's nested transformer config as flat fields: ``encoder.layers`` -> ``encoder_layers``."""
    flat = []
    for spec in fields(TransformerConfig):
        if spec.name.startswith("_"):
            continue
        if spec.name not in _NESTED:
            flat.append((spec.name, spec.type, spec))
            continue
        for inner in fields(_NESTED[spec.name]):
            if not inner.name.startswith("_"):
                flat.append((f"{spec.name}_{inner.name}", inner.type, inner))
    return flat


def _copy(name: str, spec: Any) -> Any:
    default = spec.default
    if default is MISSING:
        return field(default_factory=spec.default_factory, metadata=spec.metadata)
    if name in ("decoder_input_dim", "decoder_output_dim"):
        default = II("model.decoder_embed_dim")
    return field(default=default, metadata=spec.metadata)


FlatTransformerConfig = make_dataclass(
    "FlatTransformerConfig",
    [(name, kind, _copy(name, spec)) for name, kind, spec in _flat_fields()],
    bases=(FairseqDataclass,),
)


def _help(text: str) -> Any:
    return field(default=None, metadata={"help": text})


@dataclass
class FusionConfig(FlatTransformerConfig):  # type: ignore[misc, valid-type]
    """One group of flags per side; a flag of a strategy that is not chosen is an error."""

    src_lm: Optional[str] = _help("checkpoint of a cloze LM (bi_transformer_lm) of the source language")
    src_fusion: FusionChoice = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={"help": "none; elmo: mix of the frozen source LM's layers; finetune: its top layer, trained"},
    )
    tgt_lm: Optional[str] = _help("checkpoint of a causal LM (uni_transformer_lm) of the target language")
    tgt_fusion: FusionChoice = field(  # type: ignore[valid-type]
        default=NONE,
        metadata={"help": "none; elmo: mix of the frozen target LM's layers; finetune: its top layer, trained"},
    )
    src_elmo_dropout: Optional[float] = _help("elmo: dropout of the mixing weights (default: 0)")
    tgt_elmo_dropout: Optional[float] = _help("elmo: dropout of the mixing weights (default: 0)")
    src_elmo_affine: bool = field(
        default=False, metadata={"help": "elmo: learned scale and shift in the mix's layer norm"}
    )
    tgt_elmo_affine: bool = field(
        default=False, metadata={"help": "elmo: learned scale and shift in the mix's layer norm"}
    )
    src_lm_dropout: Optional[float] = _help("finetune: the LM's dropout (default: as pretrained)")
    tgt_lm_dropout: Optional[float] = _help("finetune: the LM's dropout (default: as pretrained)")
    src_lm_attention_dropout: Optional[float] = _help(
        "finetune: the LM's attention dropout (default: as pretrained)"
    )
    tgt_lm_attention_dropout: Optional[float] = _help(
        "finetune: the LM's attention dropout (default: as pretrained)"
    )
    src_lm_relu_dropout: Optional[float] = _help(
        "finetune: the LM's dropout after the ReLU (default: as pretrained)"
    )
    tgt_lm_relu_dropout: Optional[float] = _help(
        "finetune: the LM's dropout after the ReLU (default: as pretrained)"
    )
    src_lm_lr_scale: Optional[float] = _help("finetune: the LM's learning rate as a multiple of --lr (default: 1)")
    tgt_lm_lr_scale: Optional[float] = _help("finetune: the LM's learning rate as a multiple of --lr (default: 1)")
    src_lm_freeze_layers: Optional[int] = _help(
        "finetune: keep the LM's embeddings and this many lower layers as pretrained (default: 0, all is trained)"
    )
    tgt_lm_freeze_layers: Optional[int] = _help(
        "finetune: keep the LM's embeddings and this many lower layers as pretrained (default: 0, all is trained)"
    )
    src_lm_freeze_updates: Optional[int] = _help(
        "finetune: leave the LM as it is for the first updates, until the rest has found its feet (default: 0)"
    )
    tgt_lm_freeze_updates: Optional[int] = _help(
        "finetune: leave the LM as it is for the first updates, until the rest has found its feet (default: 0)"
    )
    src_representation_dropout: Optional[float] = _help(
        "dropout of what replaces the word embeddings (default: 0)"
    )
    tgt_representation_dropout: Optional[float] = _help(
        "dropout of what replaces the word embeddings (default: 0)"
    )
    src_embed_scale: Optional[float] = _help(
        "factor on what replaces the word embeddings (default: sqrt of the channels, as released)"
    )
    tgt_embed_scale: Optional[float] = _help(
        "factor on what replaces the word embeddings (default: sqrt of the channels, as released)"
    )
    src_positions: PositionChoice = field(  # type: ignore[valid-type]
        default=AUTO, metadata={"help": "position embeddings of the encoder itself (auto: none behind a frozen LM)"}
    )
    tgt_positions: PositionChoice = field(  # type: ignore[valid-type]
        default=AUTO, metadata={"help": "position embeddings of the decoder itself (auto: it has them)"}
    )
    src_lm_cache: Optional[str] = _help(
        "elmo: folder for the source LM's states of training sentences, to be read back in later epochs and runs"
    )
    src_lm_cache_half: bool = field(
        default=False, metadata={"help": "store them in half precision: half the size, an error below 0.05%"}
    )
    store_lm_once: bool = field(
        default=False,
        metadata={"help": "elmo: keep the frozen LM in one file beside the checkpoints instead of in each of them"},
    )
    cpu_bf16: bool = field(default=False, metadata={"help": CPU_BF16_HELP})
    src_lm_config: Optional[str] = _help("written by lmfusion into checkpoints; do not set")
    tgt_lm_config: Optional[str] = _help("written by lmfusion into checkpoints; do not set")


def frozen_lms(cfg: Mapping[str, Any]) -> list[str]:
    """Prefixes of the weights that ``--store-lm-once`` keeps in files of their own: those of frozen language models.

    Args:
        cfg: a model's configuration, as plain values.
    """
    if not cfg.get("store_lm_once"):
        return []
    parts = {"src": "encoder", "tgt": "decoder"}
    return [f"{parts[side]}.embed_tokens.representation.lm." for side in SIDES if cfg.get(f"{side}_fusion") == ELMO]


def has_positions(cfg: Any, side: str) -> bool:
    """Whether a side's encoder or decoder has position embeddings of its own.

    Behind a source LM's mixed states, which know their positions, it has none unless asked for (SPEC section 2).
    """
    choice = getattr(cfg, f"{side}_positions")
    if choice == AUTO:
        return not cfg.no_token_positional_embeddings and not (side == "src" and cfg.src_fusion == ELMO)
    return bool(choice == OWN)
