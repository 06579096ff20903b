"""Check that the flags of a model with language models go together."""

from __future__ import annotations

import math
from dataclasses import MISSING, fields
from typing import Any

from lmfusion.errors import InputError
from lmfusion.fusion.config import (
    ELMO,
    NONE,
    OWN,
    SIDE_NAMES,
    SIDES,
    STACKS,
    FusionConfig,
    fusions_of,
    has_positions,
    integration,
    integration_config,
    replaces_embeddings,
    starts_stack,
)
from lmfusion.fusion.interface import FUSIONS
from lmfusion.lm.symbols import first_difference


def check_combination(cfg: Any) -> None:
    """Refuse combinations of flags that cannot work, or of which one would be ignored.

    Args:
        cfg: the model's flat configuration.

    Raises:
        InputError: naming the flags and the fix.
    """
    for part in ("encoder", "decoder"):
        _check_sizes(cfg, part)
    check_sides(cfg)
    for side in SIDES:
        _check_positions(cfg, side)
    chosen = [fusion for side in SIDES if (fusion := integration(cfg, side)) is not None]
    for name in ("decoder_input_dim", "decoder_output_dim"):  # fairseq itself gives its embeddings --decoder-embed-dim
        value = getattr(cfg, name)
        if isinstance(value, int) and value != cfg.decoder_embed_dim:
            raise InputError(
                f"--{name.replace('_', '-')} {value} would be ignored, for the decoder's embeddings have "
                f"--decoder-embed-dim {cfg.decoder_embed_dim} channels: leave it out."
            )
    if cfg.share_all_embeddings and any(starts_stack(cfg, side) for side in SIDES):
        raise InputError(
            "--share-all-embeddings (SHARED) would start the embeddings of both sides from one side's language model: "
            "leave it out, or use --share-decoder-input-output-embed (SHDEMB)."
        )
    if cfg.quant_noise_scalar and any(fusion.keeps_lm for fusion in chosen):
        raise InputError("--quant-noise-scalar would quantize the layers of the language model as well: leave it out.")
    if cfg.tie_adaptive_weights and cfg.adaptive_softmax_cutoff:
        raise InputError(
            "--tie-adaptive-weights ties the adaptive softmax to adaptive embeddings, which a translation model of "
            "fairseq does not have: leave it out."
        )
    if cfg.merge_src_tgt_embed and chosen:
        raise InputError(
            "--merge-src-tgt-embed makes one dictionary of both sides, and a language model needs its own: "
            "leave it out."
        )


def check_sides(cfg: Any) -> None:
    """Refuse flags of the two sides that cannot work, in a model of any kind.

    Args:
        cfg: the model's flat configuration.

    Raises:
        InputError: naming the flags and the fix.
    """
    for side in SIDES:
        check_side(cfg, side)
    if cfg.share_all_embeddings and any(replaces_embeddings(cfg, side) for side in SIDES):
        raise InputError(
            "--share-all-embeddings (SHARED) ties encoder, decoder and output embeddings, but a "
            "side with a language model has no embeddings of its own to tie: leave it out, or use "
            "--share-decoder-input-output-embed (SHDEMB) with a source LM."
        )
    chosen = [fusion for side in SIDES if (fusion := integration(cfg, side)) is not None]
    if cfg.store_lm_once and all(fusion.trains_lm for fusion in chosen):
        raise InputError(
            f"--store-lm-once would be ignored: it is for a frozen language model (--src-fusion {ELMO} or --tgt-fusion "
            f"{ELMO}), and there is none."
        )
    if cfg.share_decoder_input_output_embed and replaces_embeddings(cfg, "tgt"):
        raise InputError(
            "--share-decoder-input-output-embed (SHDEMB) ties the decoder's input and output "
            "embeddings, but with --tgt-fusion the language model takes the place of the input "
            "embeddings: leave one of the two out."
        )


def check_shared(cfg: Any, task: Any) -> None:
    """Refuse ``--share-all-embeddings`` (SHARED) where encoder and decoder cannot have the same embedding.

    Args:
        cfg: the model's flat configuration.
        task: fairseq's, with the dictionaries of both sides.

    Raises:
        InputError: naming what differs and the fix.
    """
    if not cfg.share_all_embeddings or getattr(cfg, "merge_src_tgt_embed", False):
        return
    shared = "--share-all-embeddings (SHARED) needs"
    if cfg.encoder_embed_dim != cfg.decoder_embed_dim:
        raise InputError(
            f"{shared} --encoder-embed-dim {cfg.encoder_embed_dim} and --decoder-embed-dim {cfg.decoder_embed_dim} to "
            f"be the same."
        )
    symbols = [list(dictionary.symbols) for dictionary in (task.source_dictionary, task.target_dictionary)]
    if symbols[0] != symbols[1]:
        raise InputError(
            f"{shared} one dictionary for both sides, and these differ first at index {first_difference(*symbols)}: "
            f"prepare the data with a joint one (fairseq-preprocess --joined-dictionary), or leave it out."
        )


def _flag(side: str, name: str) -> str:
    return f"--{side}-{name.replace('_', '-')}"


def _check_sizes(cfg: Any, part: str) -> None:
    sizes = {name: getattr(cfg, f"{part}_{name}") for name in ("embed_dim", "ffn_embed_dim", "attention_heads")}
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"--{part}-{name.replace('_', '-')} {size}: give 1 or more.")
    if sizes["embed_dim"] % sizes["attention_heads"]:
        raise InputError(
            f"--{part}-attention-heads {sizes['attention_heads']} do not divide the {sizes['embed_dim']} channels of "
            f"--{part}-embed-dim: give a number that does."
        )


def _check_choice(cfg: Any, side: str) -> None:
    fusion, lm, stack = getattr(cfg, f"{side}_fusion"), getattr(cfg, f"{side}_lm"), STACKS[side]
    described = getattr(cfg, f"{side}_lm_config")
    if fusion != NONE and fusion not in FUSIONS:
        raise InputError(
            f"--{side}-fusion {fusion} is not registered (registered are {', '.join(FUSIONS)}). If it comes from a "
            f"folder of your own, give that folder as --user-dir, or import it before load_model."
        )
    if fusion in FUSIONS and fusion not in fusions_of(side):
        raise InputError(
            f"--{side}-fusion {fusion} is not for the {SIDE_NAMES[side]} side: choose one of "
            f"{', '.join(fusions_of(side))}."
        )
    if fusion != NONE and not lm and not described:
        raise InputError(f"--{side}-fusion {fusion} needs a language model: give it by --{side}-lm.")
    if fusion == NONE and lm:
        raise InputError(
            f"--{side}-lm {lm} would be ignored: say how to use it by --{side}-fusion "
            f"({', '.join(fusions_of(side))}), or leave it out."
        )
    if fusion == NONE and described:
        raise InputError(
            f"--{side}-lm-config is written by lmfusion into checkpoints, and would be ignored with --{side}-fusion "
            f"{NONE}: leave it out."
        )
    if starts_stack(cfg, side) and getattr(cfg, f"{stack}_embed_path", None):
        raise InputError(
            f"--{stack}-embed-path would be ignored: with --{side}-fusion {fusion} the {stack} starts from the "
            f"language model's embeddings."
        )
    if replaces_embeddings(cfg, side) and getattr(cfg, f"{stack}_embed_path", None):
        raise InputError(
            f"--{stack}-embed-path would be ignored: with --{side}-fusion {fusion} the language model takes the place "
            f"of the {stack}'s embeddings."
        )


def check_side(cfg: Any, side: str) -> None:
    """Refuse flags of one side that cannot work, in a model of any kind.

    Args:
        cfg: the model's flat configuration.
        side: ``"src"`` or ``"tgt"``.

    Raises:
        InputError: naming the flags and the fix.
    """
    _check_choice(cfg, side)
    _check_owners(cfg, side)
    for name in FusionConfig.__dataclass_fields__:
        value = getattr(cfg, name, None) if name.startswith(f"{side}_") and name.endswith("dropout") else None
        if value is not None and not 0 <= value < 1:
            raise InputError(f"--{name.replace('_', '-')} {value:g}: give a probability, 0 or more and below 1.")
    fusion = integration(cfg, side)
    if fusion is not None:
        run = getattr(cfg, "_get_parent", lambda: None)()
        fusion.check(integration_config(cfg, side), lambda name: _flag(side, name), run)


def _check_owners(cfg: Any, side: str) -> None:
    """Refuse flags of an integration that is not chosen; a zero counts as given."""
    owners = {"embed_scale": [name for name, fusion in FUSIONS.items() if fusion.replaces_embeddings]}
    defaults: dict[str, Any] = {}
    for name, fusion in FUSIONS.items():
        for spec in fields(fusion.Config):
            owners.setdefault(spec.name, []).append(name)
            defaults[spec.name] = spec.default if spec.default_factory is MISSING else spec.default_factory()
    chosen = getattr(cfg, f"{side}_fusion")
    for flag, names in owners.items():
        value = getattr(cfg, f"{side}_{flag}", None)
        is_given = value is not None and value is not False and value != defaults.get(flag)
        if is_given and chosen not in names:
            raise InputError(
                f"{_flag(side, flag)} would be ignored with --{side}-fusion {chosen}: it belongs to --{side}-fusion "
                f"{' or '.join(names)}."
            )


def _check_positions(cfg: Any, side: str) -> None:
    if cfg.no_scale_embedding and getattr(cfg, f"{side}_embed_scale") is not None:
        raise InputError(f"--no-scale-embedding contradicts --{side}-embed-scale: give one of the two.")
    scale = getattr(cfg, f"{side}_embed_scale")
    if scale is not None and not math.isfinite(scale):
        raise InputError(f"--{side}-embed-scale {scale:g}: give a number.")
    if cfg.no_token_positional_embeddings and getattr(cfg, f"{side}_positions") == OWN:
        raise InputError(f"--no-token-positional-embeddings contradicts --{side}-positions {OWN}: give one of the two.")
    if side == "src" and cfg.encoder_learned_pos and not has_positions(cfg, side):
        chosen = integration(cfg, side) is not None
        reason = f"with --src-fusion {cfg.src_fusion}" if chosen else "with these flags"
        raise InputError(f"--encoder-learned-pos would be ignored: {reason} the encoder has no positions of its own.")
