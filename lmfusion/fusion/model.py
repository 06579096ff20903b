"""``transformer_lmfusion``: fairseq's transformer with a pretrained LM on either side or both.

The only file that knows both axes of the table in the paper's section 2.
"""

from __future__ import annotations

import copy
import json
from argparse import ArgumentParser
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from omegaconf import OmegaConf, open_dict
from torch import nn

from lmfusion.checkpoint.fallback import starts_from, whole_checkpoint
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.errors import UserError
from lmfusion.fusion.build import build_representation, reading_of
from lmfusion.fusion.combinations import check_combination, check_shared
from lmfusion.fusion.config import NONE, SIDES, FusionConfig, has_positions
from lmfusion.fusion.learning_rates import check_optimizer_settings, check_unused_parameters
from lmfusion.fusion.source import LMFusionEncoder, SourceEmbedding
from lmfusion.fusion.target import LMFusionDecoder, TargetEmbedding
from lmfusion.lm.interface import Head
from lmfusion.lm.precision import autocast_recomputations, training_autocast
from lmfusion.operations import speed_up
from lmfusion.state_cache.plan import announce


@register_model("transformer_lmfusion", dataclass=FusionConfig)
class TransformerLMFusion(TransformerModelBase):
    """Encoder and decoder of fairseq, each on its own embeddings or on a language model.

    A checkpoint is complete in itself: it holds the LMs' weights and, in its config, how to build
    them, so that their files are needed only when training starts.
    """

    takes_head = True  # lmfusion/training/criterions.py

    def __init__(self, cfg: Any, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__(cfg, encoder, decoder)
        self.cpu_bf16 = bool(cfg.cpu_bf16)
        # True while an LM inside was built from a checkpoint's config and has no weights yet.
        self.needs_weights = False

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add all flags; named architectures supply defaults."""
        gen_parser_from_dataclass(parser, FusionConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> TransformerLMFusion:
        """Build for fairseq's ``translation`` task.

        Raises:
            UserError: if flags contradict each other or a language model cannot be used.
        """
        _fill_defaults(cfg)
        check_combination(cfg)
        check_shared(cfg, task)
        _check_trainer(cfg)
        _use_stored_lm(cfg)
        described = any(getattr(cfg, f"{side}_lm_config") for side in SIDES)
        nested = TransformerConfig.from_namespace(cfg)
        nested.decoder.input_dim = nested.decoder.output_dim = nested.decoder.embed_dim
        for name in ("cpu_bf16", *_fusion_names()):
            setattr(nested, name, getattr(cfg, name))
        model = super().build_model(nested, task)
        assert isinstance(model, TransformerLMFusion)
        speed_up(model, products=not nested.quant_noise.scalar, attention=not nested.quant_noise.pq)
        autocast_recomputations(model, nested.cpu_bf16)
        model.needs_weights = described
        if not described:
            _check_same_lms(cfg, nested)
            if nested.src_lm_cache:
                announce(model.encoder.embed_tokens.representation.stored, getattr(cfg, "_get_parent", lambda: None)())
        for side in SIDES:
            _remember(cfg, f"{side}_lm_config", getattr(nested, f"{side}_lm_config"))
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """fairseq's encoder, on the source LM if there is one."""
        encoder_cfg = copy.copy(cfg)
        encoder_cfg.no_token_positional_embeddings = not has_positions(cfg, "src")
        if cfg.src_fusion == NONE:
            return super().build_encoder(encoder_cfg, src_dict, embed_tokens)
        representation = build_representation(cfg, "src", src_dict, cfg.encoder.embed_dim)
        embedding = SourceEmbedding(representation, leading_eos=reading_of(cfg, "src").leading_eos)
        return LMFusionEncoder(encoder_cfg, src_dict, embedding)

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """fairseq's decoder, on the target LM if there is one."""
        decoder_cfg = copy.copy(cfg)
        decoder_cfg.no_token_positional_embeddings = not has_positions(cfg, "tgt")
        if cfg.tgt_fusion == NONE:
            return super().build_decoder(decoder_cfg, tgt_dict, embed_tokens)
        representation = build_representation(cfg, "tgt", tgt_dict, cfg.decoder.embed_dim)
        return LMFusionDecoder(decoder_cfg, tgt_dict, TargetEmbedding(representation))

    def forward(self, *args: Any, head: Head | None = None, **kwargs: Any) -> Any:
        """As fairseq's transformer; what a ``head`` makes of features and output embeddings stands where logits do.

        Raises:
            UserError: if an LM inside never got its weights, or a head is given to an adaptive softmax.
        """
        if self.needs_weights:
            raise UserError(
                "the language model inside this model has no weights: its description "
                "(--src-lm-config/--tgt-lm-config) belongs to checkpoints. To start training, give "
                "--src-lm/--tgt-lm instead."
            )
        if head is not None and self.decoder.adaptive_softmax is not None:
            raise UserError(
                "--adaptive-softmax-cutoff makes no logits of all types: leave it or chunked_ in --criterion out."
            )
        with training_autocast(self, self.cpu_bf16):
            if head is None:
                return super().forward(*args, **kwargs)
            features, extra = super().forward(*args, **{**kwargs, "features_only": True})
            return head(features, self.decoder.output_projection.weight), extra

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """As fairseq's; afterwards the LMs inside have their weights."""
        result = super().load_state_dict(state_dict, *args, **kwargs)
        missing = result.missing_keys if result is not None else []
        self.needs_weights = self.needs_weights and any(".embed_tokens.representation.lm." in name for name in missing)
        return result


def _fusion_names() -> Any:
    return [name for name in FusionConfig.__dataclass_fields__ if name.startswith(("src_", "tgt_"))]


def _fill_defaults(cfg: Any) -> None:
    """Give a checkpoint's config the flags that are newer than it."""
    with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
        for name, spec in FusionConfig.__dataclass_fields__.items():
            if not name.startswith("_") and not hasattr(cfg, name):
                setattr(cfg, name, spec.default)


def _check_trainer(cfg: Any) -> None:
    """Refuse what a training run's other settings make impossible."""
    run = getattr(cfg, "_get_parent", lambda: None)()
    for side in SIDES:
        for name in ("lm_lr_scale", "lm_freeze_updates"):
            if getattr(cfg, f"{side}_{name}") is not None:
                check_optimizer_settings(run, f"--{side}-{name.replace('_', '-')}")
        if getattr(cfg, f"{side}_lm_freeze_updates"):
            check_unused_parameters(run, f"--{side}-lm-freeze-updates")


def _remember(cfg: Any, name: str, value: str | None) -> None:
    """Write into the config that fairseq saves, of which ``cfg`` may be a copy."""
    setattr(cfg, name, value)
    parent = getattr(cfg, "_get_parent", lambda: None)()
    if parent is not None and "model" in parent:
        parent["model"][name] = value


def _use_stored_lm(cfg: Any) -> None:
    """When a run resumes and an LM's file is gone, its description is in the run's checkpoint."""
    missing = [
        side
        for side in SIDES
        if getattr(cfg, f"{side}_lm")
        and not getattr(cfg, f"{side}_lm_config")
        and not Path(getattr(cfg, f"{side}_lm")).exists()
    ]
    path = _checkpoint_to_start_from(cfg) if missing else None
    if path is None:
        return
    stored = (read_checkpoint(path).get("cfg") or {}).get("model") or {}
    for side in missing:
        setattr(cfg, f"{side}_lm_config", stored.get(f"{side}_lm_config"))


def _check_same_lms(cfg: Any, built: Any) -> None:
    """A run has the LM that the checkpoint it starts from brings the weights of: another would be ignored.

    Raises:
        UserError: naming the file, the checkpoint and the mend.
    """
    path = _checkpoint_to_start_from(cfg) if any(getattr(cfg, f"{side}_lm") for side in SIDES) else None
    if path is None:
        return
    stored = (read_checkpoint(path).get("cfg") or {}).get("model") or {}
    for side in SIDES:
        before, now = stored.get(f"{side}_lm_config"), getattr(built, f"{side}_lm_config")
        if before and now and json.loads(before).get("fingerprint") != json.loads(now)["fingerprint"]:
            raise UserError(
                f"{path} was trained with another language model than {getattr(cfg, f'{side}_lm')}, which would be "
                f"ignored: give the one it was trained with as --{side}-lm, or begin anew in another --save-dir."
            )


def _checkpoint_to_start_from(cfg: Any) -> Path | None:
    """The checkpoint fairseq-train is about to take weights from, if any."""
    parent = getattr(cfg, "_get_parent", lambda: None)()
    options = parent.get("checkpoint") if parent is not None else None
    if options is None:
        return None
    path, _ = starts_from(options)
    return None if path is None else whole_checkpoint(path)
