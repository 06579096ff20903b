"""Which flags of ``transformer_lmfusion`` go together."""

from __future__ import annotations

from typing import Any

from lmfusion.errors import UserError
from lmfusion.fusion.config import ELMO, FINETUNE, NONE, OWN, SIDES, has_positions
from lmfusion.lm.interface import first_difference

_DROPOUTS = ("elmo_dropout", "lm_dropout", "lm_attention_dropout", "lm_relu_dropout", "representation_dropout")
_ONLY_ELMO = ("elmo_dropout", "elmo_affine")
_ONLY_FINETUNE = (
    *("lm_dropout", "lm_attention_dropout", "lm_relu_dropout"),
    *("lm_lr_scale", "lm_freeze_layers", "lm_freeze_updates"),
)


def check_combination(cfg: Any) -> None:
    """Refuse combinations of flags that cannot work, or of which one would be ignored.

    Raises:
        UserError: naming the flags and the mend.
    """
    for part in ("encoder", "decoder"):
        _check_sizes(cfg, part)
    for side in SIDES:
        _check_side(cfg, side)
        _check_ranges(cfg, side)
    if cfg.store_lm_once and ELMO not in (cfg.src_fusion, cfg.tgt_fusion):
        raise UserError(
            f"--store-lm-once would be ignored: it is for a frozen language model (--src-fusion {ELMO} or --tgt-fusion "
            f"{ELMO}), and there is none."
        )
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
    if cfg.quant_noise_scalar and (cfg.src_fusion != NONE or cfg.tgt_fusion != NONE):
        raise UserError(
            "--quant-noise-scalar would quantize the layers of the language model as well: leave it out."
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


def check_shared(cfg: Any, task: Any) -> None:
    """Refuse SHARED where encoder and decoder cannot have the same embedding.

    Raises:
        UserError: naming what differs and the mend.
    """
    if not cfg.share_all_embeddings or cfg.merge_src_tgt_embed:
        return
    shared = "--share-all-embeddings (SHARED) needs"
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise UserError(
            f"{shared} --encoder-embed-dim {cfg.encoder_embed_dim} and --decoder-embed-dim {cfg.decoder_embed_dim} to "
            f"be the same."
        )
    symbols = [list(dictionary.symbols) for dictionary in (task.source_dictionary, task.target_dictionary)]
    if symbols[0] != symbols[1]:
        raise UserError(
            f"{shared} one dictionary for both sides, and these differ first at index {first_difference(*symbols)}: "
            f"prepare the data with a joint one (fairseq-preprocess --joined-dictionary), or leave it out."
        )


def _check_sizes(cfg: Any, part: str) -> None:
    sizes = {name: getattr(cfg, f"{part}_{name}") for name in ("embed_dim", "ffn_embed_dim", "attention_heads")}
    for name, size in sizes.items():
        if size < 1:
            raise UserError(f"--{part}-{name.replace('_', '-')} {size}: give 1 or more.")
    if sizes["embed_dim"] % sizes["attention_heads"]:
        raise UserError(
            f"--{part}-attention-heads {sizes['attention_heads']} do not divide the {sizes['embed_dim']} channels of "
            f"--{part}-embed-dim: give a number that does."
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
    if side == "src" and cfg.src_fusion != ELMO:
        misplaced += [("lm_cache", ELMO), ("lm_cache_half", ELMO)]
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
    for name in _DROPOUTS:
        value = getattr(cfg, f"{side}_{name}")
        if value is not None and not 0 <= value < 1:
            raise UserError(f"--{side}-{name.replace('_', '-')} {value:g}: give a probability, 0 or more and below 1.")
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
    if side == "src" and cfg.src_lm_cache_half and not cfg.src_lm_cache:
        raise UserError("--src-lm-cache-half would be ignored: it says how --src-lm-cache FOLDER stores.")
    if cfg.no_scale_embedding and getattr(cfg, f"{side}_embed_scale") is not None:
        raise UserError(f"--no-scale-embedding contradicts --{side}-embed-scale: give one of the two.")
    if cfg.no_token_positional_embeddings and getattr(cfg, f"{side}_positions") == OWN:
        raise UserError(f"--no-token-positional-embeddings contradicts --{side}-positions {OWN}: give one of the two.")
    if side == "src" and cfg.encoder_learned_pos and not has_positions(cfg, side):
        reason = f"with --src-fusion {ELMO}" if cfg.src_fusion == ELMO else "with these flags"
        raise UserError(f"--encoder-learned-pos would be ignored: {reason} the encoder has no positions of its own.")
