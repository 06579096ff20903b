"""``transformer_lmfusion``: fairseq's transformer with a pretrained LM on either side or both.

The only file that knows both sides and all integrations (Edunov et al. 2019, section 2).
"""

from __future__ import annotations

import copy
import json
import logging
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from omegaconf import OmegaConf, open_dict
from torch import nn

from lmfusion.checkpoint.reading import read_checkpoint, stored_model_config
from lmfusion.checkpoint.starting_point import starts_from
from lmfusion.errors import InputError
from lmfusion.fusion.build import build_fusion
from lmfusion.fusion.combinations import check_combination, check_shared
from lmfusion.fusion.config import SIDES, STACKS, FusionConfig, has_positions, integration
from lmfusion.fusion.interface import Fusion
from lmfusion.fusion.source import LMFusionEncoder, SourceEmbedding, SourceReader
from lmfusion.fusion.target import LMFusionDecoder, TargetEmbedding, TargetReader
from lmfusion.lm.interface import Head
from lmfusion.lm.precision import autocast_recomputations, training_autocast
from lmfusion.lm.transformer.base import check_beam
from lmfusion.operations import speed_up

logger = logging.getLogger(__name__)


@register_model("transformer_lmfusion", dataclass=FusionConfig)
class TransformerLMFusion(TransformerModelBase):
    """A sequence-to-sequence transformer whose encoder and decoder may each use a pretrained language model.

    A checkpoint is complete in itself: it holds the LMs' weights and their configuration, so that their own files are
    needed only when training starts.
    """

    takes_head = True  # lmfusion/training/criterions.py

    def __init__(self, cfg: Any, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__(cfg, encoder, decoder)
        self.cpu_bf16 = bool(cfg.cpu_bf16)
        # True while an LM inside was built from a checkpoint's config and has no weights yet.
        self.needs_weights = False

    @classmethod
    def add_args(cls, parser: ArgumentParser) -> None:
        """Add all flags to the command line; named architectures supply defaults."""
        gen_parser_from_dataclass(parser, FusionConfig(), delete_default=True)

    @classmethod
    def build_model(cls, cfg: Any, task: Any) -> TransformerLMFusion:
        """Build the model for fairseq's ``translation`` task, from flags or from a checkpoint's configuration.

        Raises:
            InputError: if flags contradict each other or a language model cannot be used.
        """
        _fill_defaults(cfg)
        check_combination(cfg)
        check_shared(cfg, task)
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
        _truncate_to_model(task, model)
        model.needs_weights = described
        for fusion, stack in model.fusions():
            if stack is model.encoder and not fusion.replaces_embeddings:
                model.decoder.read_source(fusion)
            if not described:
                fusion.begin(getattr(cfg, "_get_parent", lambda: None)())
                fusion.load_into(stack)
        if not described:
            _check_same_lms(cfg, nested)
        for side in SIDES:
            remember(cfg, f"{side}_lm_config", getattr(nested, f"{side}_lm_config"))
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """Build fairseq's encoder, with the source LM if there is one."""
        encoder_cfg = _stack_config(cfg, "src")
        if integration(cfg, "src") is None:
            return super().build_encoder(encoder_cfg, src_dict, embed_tokens)
        fusion, side = build_fusion(cfg, "src", src_dict)
        fusion.configure(fusion.lm, side, encoder_cfg)
        if fusion.replaces_embeddings:
            return LMFusionEncoder(encoder_cfg, src_dict, SourceEmbedding(fusion, src_dict, side.width))
        return LMFusionEncoder(encoder_cfg, src_dict, embed_tokens, SourceReader(fusion, src_dict))

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """Build fairseq's decoder, with the target LM if there is one, and able to read the source LM beside it."""
        decoder_cfg = _stack_config(cfg, "tgt")
        source = integration(cfg, "src")
        if integration(cfg, "tgt") is None:
            if source is None or source.replaces_embeddings:
                return super().build_decoder(decoder_cfg, tgt_dict, embed_tokens)
            return LMFusionDecoder(decoder_cfg, tgt_dict, embed_tokens)
        fusion, side = build_fusion(cfg, "tgt", tgt_dict)
        fusion.configure(fusion.lm, side, decoder_cfg)
        if fusion.replaces_embeddings:
            return LMFusionDecoder(decoder_cfg, tgt_dict, TargetEmbedding(fusion, tgt_dict, side.width))
        return LMFusionDecoder(decoder_cfg, tgt_dict, embed_tokens, TargetReader(fusion, tgt_dict))

    def fusions(self) -> Iterator[tuple[Fusion, nn.Module]]:
        """Yield the integration of each side that has one, with the side's stack."""
        for stack in (self.encoder, self.decoder):
            if getattr(stack, "fusion", None) is not None:
                yield stack.fusion, stack

    def forward(self, *args: Any, head: Head | None = None, **kwargs: Any) -> Any:
        """Compute logits as fairseq's transformer does.

        Args:
            head: function of features (B x T x C) and output embeddings (V x C) whose result replaces the logits.

        Raises:
            InputError: if an LM inside never got its weights, or a head is given to an adaptive softmax.
        """
        if self.needs_weights:
            raise InputError(
                "the language model inside this model has no weights: its description "
                "(--src-lm-config/--tgt-lm-config) belongs to checkpoints. To train, give --src-lm/--tgt-lm instead."
            )
        if head is not None and self.decoder.adaptive_softmax is not None:
            raise InputError(
                "--adaptive-softmax-cutoff computes no full logits: leave out that flag, or chunked_ in --criterion."
            )
        with training_autocast(self, self.cpu_bf16):
            if head is None:
                return super().forward(*args, **kwargs)
            features, extra = super().forward(*args, **{**kwargs, "features_only": True})
            return head(features, self.decoder.output_projection.weight), extra

    def prepare_for_inference_(self, cfg: Any) -> None:
        """Prepare for decoding, as fairseq does.

        Raises:
            InputError: if --beam is below 1.
        """
        check_beam(cfg.generation.beam)
        super().prepare_for_inference_(cfg)

    def load_state_dict(self, state_dict: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load weights as fairseq does, and note whether the LMs inside have got theirs."""
        result = super().load_state_dict(state_dict, *args, **kwargs)
        missing = result.missing_keys if result is not None else []
        self.needs_weights = self.needs_weights and any(".representation.lm." in name for name in missing)
        return result


def _stack_config(cfg: Any, side: str) -> Any:
    """Return a copy of fairseq's nested configuration for one stack, which may be changed."""
    stack_cfg = copy.copy(cfg)
    setattr(stack_cfg, STACKS[side], copy.copy(getattr(cfg, STACKS[side])))
    stack_cfg.no_token_positional_embeddings = not has_positions(cfg, side)
    return stack_cfg


def _fusion_names() -> Any:
    return [name for name in FusionConfig.__dataclass_fields__ if name.startswith(("src_", "tgt_"))]


def _truncate_to_model(task: Any, model: TransformerLMFusion) -> None:
    """Make ``--truncate-source`` cut to the model's longest source; fairseq cuts to --max-source-positions alone.

    fairseq reads its data sets later. The task's configuration is a copy: a checkpoint keeps the value given.
    """
    settings: Any = getattr(task, "cfg", None)
    limit = model.encoder.max_positions()
    if getattr(settings, "truncate_source", False) and limit < settings.max_source_positions:
        logger.info(f"--truncate-source: sources are cut to the {limit} tokens that the model takes")
        settings.max_source_positions = limit


def _fill_defaults(cfg: Any) -> None:
    """Set the flags that are newer than a checkpoint's configuration to their defaults."""
    with open_dict(cfg) if OmegaConf.is_config(cfg) else nullcontext():
        for name, spec in FusionConfig.__dataclass_fields__.items():
            if not name.startswith("_") and not hasattr(cfg, name):
                setattr(cfg, name, spec.default)


def remember(cfg: Any, name: str, value: str | None) -> None:
    """Set a value in ``cfg`` and in the configuration that fairseq saves, of which ``cfg`` may be a copy."""
    setattr(cfg, name, value)
    parent = getattr(cfg, "_get_parent", lambda: None)()
    if parent is not None and "model" in parent:
        parent["model"][name] = value


def _use_stored_lm(cfg: Any) -> None:
    """Take an LM's description from the run's checkpoint where a run resumes and the LM's file is gone."""
    given = [side for side in SIDES if getattr(cfg, f"{side}_lm") and not getattr(cfg, f"{side}_lm_config")]
    missing = [side for side in given if not Path(getattr(cfg, f"{side}_lm")).exists()]
    path = checkpoint_to_start_from(cfg) if missing else None
    if path is None:
        return
    stored = stored_model_config(read_checkpoint(path))
    for side in missing:
        setattr(cfg, f"{side}_lm_config", stored.get(f"{side}_lm_config"))


def _check_same_lms(cfg: Any, built: Any) -> None:
    """Refuse an LM other than the one in the checkpoint that a run starts from: it would be ignored."""
    path = checkpoint_to_start_from(cfg) if any(getattr(cfg, f"{side}_lm") for side in SIDES) else None
    if path is None:
        return
    stored = stored_model_config(read_checkpoint(path))
    for side in SIDES:
        before, now = stored.get(f"{side}_lm_config"), getattr(built, f"{side}_lm_config")
        if before and now and json.loads(before).get("fingerprint") != json.loads(now)["fingerprint"]:
            raise InputError(
                f"{path} was trained with another language model than {getattr(cfg, f'{side}_lm')}, which would be "
                f"ignored: give the one it was trained with as --{side}-lm, or restart in another --save-dir."
            )


def checkpoint_to_start_from(cfg: Any) -> Path | None:
    """Return the path of the checkpoint that fairseq-train is about to load, if any."""
    parent = getattr(cfg, "_get_parent", lambda: None)()
    options = parent.get("checkpoint") if parent is not None else None
    return None if options is None else starts_from(options)
