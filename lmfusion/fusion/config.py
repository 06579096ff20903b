"""Flags of ``transformer_lmfusion``: fairseq's transformer, flat, and what is ours on top.

Flat, because fairseq fills nested fields neither from flat flags nor consistently from Hydra.
"""

# No "from __future__ import annotations" here: fairseq reads the fields' types at run time.
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

from lmfusion.errors import UserError
from lmfusion.precision import CPU_BF16_HELP

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
        default=NONE, metadata={"help": "how the source LM is used: not, frozen and mixed, or trained"}
    )
    tgt_lm: Optional[str] = _help("checkpoint of a causal LM (uni_transformer_lm) of the target language")
    tgt_fusion: FusionChoice = field(  # type: ignore[valid-type]
        default=NONE, metadata={"help": "how the target LM is used: not, frozen and mixed, or trained"}
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
    cpu_bf16: bool = field(default=False, metadata={"help": CPU_BF16_HELP})
    src_lm_config: Optional[str] = _help("written by lmfusion into checkpoints; do not set")
    tgt_lm_config: Optional[str] = _help("written by lmfusion into checkpoints; do not set")


_ONLY_ELMO = ("elmo_dropout", "elmo_affine")
_ONLY_FINETUNE = (
    *("lm_dropout", "lm_attention_dropout", "lm_relu_dropout"),
    *("lm_lr_scale", "lm_freeze_layers", "lm_freeze_updates"),
)


def has_positions(cfg: Any, side: str) -> bool:
    """Whether a side's encoder or decoder has position embeddings of its own.

    Behind a source LM's mixed states, which know their positions, it has none unless asked for (SPEC section 2).
    """
    choice = getattr(cfg, f"{side}_positions")
    if choice == AUTO:
        return not cfg.no_token_positional_embeddings and not (side == "src" and cfg.src_fusion == ELMO)
    return bool(choice == OWN)


def check_combination(cfg: Any) -> None:
    """Refuse combinations of flags that cannot work, or of which one would be ignored.

    Raises:
        UserError: naming the flags and the mend.
    """
    for side in SIDES:
        _check_side(cfg, side)
        _check_ranges(cfg, side)
    for name in ("decoder_input_dim", "decoder_output_dim"):  # fairseq itself gives its embeddings --decoder-embed-dim
        value = getattr(cfg, name)
        if isinstance(value, int) and value != cfg.decoder_embed_dim:
            raise UserError(
                f"--{name.replace('_', '-')} {value} would be ignored, for the decoder's embeddings have "
                f"--decoder-embed-dim {cfg.decoder_embed_dim} channels: leave it out."
            )
    if cfg.share_all_embeddings and (cfg.src_fusion != NONE or cfg.tgt_fusion != NONE):
        raise UserError(
            "--share-all-embeddings (SHARED) ties encoder, decoder and output embeddings, but a "
            "side with a language model has no embeddings of its own to tie: leave it out, or use "
            "--share-decoder-input-output-embed (SHDEMB) with a source LM."
        )
    if cfg.merge_src_tgt_embed and (cfg.src_fusion != NONE or cfg.tgt_fusion != NONE):
        raise UserError(
            "--merge-src-tgt-embed makes one dictionary of both sides, and a language model needs its own: "
            "leave it out."
        )
    if cfg.share_decoder_input_output_embed and cfg.tgt_fusion != NONE:
        raise UserError(
            "--share-decoder-input-output-embed (SHDEMB) ties the decoder's input and output "
            "embeddings, but with --tgt-fusion the language model takes the place of the input "
            "embeddings: leave one of the two out."
        )


def _check_side(cfg: Any, side: str) -> None:
    fusion, lm = getattr(cfg, f"{side}_fusion"), getattr(cfg, f"{side}_lm")
    if fusion != NONE and not lm and not getattr(cfg, f"{side}_lm_config"):
        raise UserError(
            f"--{side}-fusion {fusion} needs a language model: give its checkpoint by --{side}-lm."
        )
    if fusion == NONE and lm:
        raise UserError(
            f"--{side}-lm {lm} would be ignored: say how to use it by --{side}-fusion elmo or "
            f"--{side}-fusion finetune, or leave it out."
        )
    side_name = {"src": "encoder", "tgt": "decoder"}[side]
    if fusion != NONE and getattr(cfg, f"{side_name}_embed_path"):
        raise UserError(
            f"--{side_name}-embed-path would be ignored: with --{side}-fusion {fusion} the "
            f"language model takes the place of the {side_name}'s embeddings."
        )
    misplaced = []
    if fusion != ELMO:
        misplaced += [(name, ELMO) for name in _ONLY_ELMO]
    if fusion != FINETUNE:
        misplaced += [(name, FINETUNE) for name in _ONLY_FINETUNE]
    if fusion == NONE:
        needed = f"{ELMO} or {FINETUNE}"
        misplaced += [("representation_dropout", needed), ("embed_scale", needed)]
    for name, needed in misplaced:
        value = getattr(cfg, f"{side}_{name}")
        if value is not None and value is not False:  # a zero was given on purpose, too
            raise UserError(
                f"--{side}-{name.replace('_', '-')} would be ignored with --{side}-fusion "
                f"{fusion}: it belongs to --{side}-fusion {needed}."
            )


def _check_ranges(cfg: Any, side: str) -> None:
    for name in ("lm_lr_scale", "lm_freeze_updates"):
        value = getattr(cfg, f"{side}_{name}")
        if value is not None and value < 0:
            raise UserError(f"--{side}-{name.replace('_', '-')} {value:g}: give 0 or more.")
    if getattr(cfg, f"{side}_lm_lr_scale") == 0:
        raise UserError(
            f"--{side}-lm-lr-scale 0 would keep the language model as it is while paying for its training: use "
            f"--{side}-fusion {ELMO} for a frozen one."
        )
    if getattr(cfg, f"{side}_lm_config") and getattr(cfg, f"{side}_fusion") == NONE:
        raise UserError(
            f"--{side}-lm-config is written by lmfusion into checkpoints, and would be ignored with --{side}-fusion "
            f"{NONE}: leave it out."
        )
    if cfg.no_scale_embedding and getattr(cfg, f"{side}_embed_scale") is not None:
        raise UserError(f"--no-scale-embedding contradicts --{side}-embed-scale: give one of the two.")
    if cfg.no_token_positional_embeddings and getattr(cfg, f"{side}_positions") == OWN:
        raise UserError(f"--no-token-positional-embeddings contradicts --{side}-positions {OWN}: give one of the two.")
    if side == "src" and cfg.encoder_learned_pos and not has_positions(cfg, side):
        reason = f"with --src-fusion {ELMO}" if cfg.src_fusion == ELMO else "with these flags"
        raise UserError(f"--encoder-learned-pos would be ignored: {reason} the encoder has no positions of its own.")
