"""``transformer_lmfusion``: fairseq's transformer with a pretrained LM on either side or both.

The only file that knows both sides and all integrations (Edunov et al. 2019, section 2).
"""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from fairseq.data import Dictionary
from fairseq.dataclass.utils import gen_parser_from_dataclass
from fairseq.models import register_model
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from torch import nn

from lmfusion.errors import InputError
from lmfusion.fusion.build import build_fusion, prepare_starts, stack_config
from lmfusion.fusion.combinations import check_combination, check_shared
from lmfusion.fusion.config import STACKS, FusionConfig, integration, read_by_layers, starts_stack
from lmfusion.fusion.denoiser import keep_symbols
from lmfusion.fusion.holder import HoldsLMs, check_translation_task, fill_defaults, truncate_to_model, use_stored_lm
from lmfusion.fusion.large_vocabulary import tell_memory
from lmfusion.fusion.source import LMFusionEncoder, SourceEmbedding, SourceReader
from lmfusion.fusion.target import LMFusionDecoder, TargetEmbedding, TargetReader
from lmfusion.lm.interface import Head
from lmfusion.lm.precision import autocast_recomputations, training_autocast
from lmfusion.lm.recomputation import recompute_layers
from lmfusion.operations import speed_up


@register_model("transformer_lmfusion", dataclass=FusionConfig)
class TransformerLMFusion(HoldsLMs, TransformerModelBase):
    """A sequence-to-sequence transformer whose encoder and decoder may each use a pretrained language model."""

    takes_head = True  # lmfusion/training/criterions.py

    def __init__(self, cfg: Any, encoder: nn.Module, decoder: nn.Module) -> None:
        super().__init__(cfg, encoder, decoder)
        self.cpu_bf16 = bool(cfg.cpu_bf16)

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
        check_translation_task(task)
        fill_defaults(cfg, FusionConfig)
        check_combination(cfg)
        check_shared(cfg, task)
        tell_memory(len(task.target_dictionary), cfg.decoder_embed_dim, getattr(cfg, "_get_parent", lambda: None)())
        described = use_stored_lm(cfg)
        nested = TransformerConfig.from_namespace(cfg)
        nested.decoder.input_dim = nested.decoder.output_dim = nested.decoder.embed_dim
        for name in ("cpu_bf16", *_fusion_names()):
            setattr(nested, name, getattr(cfg, name))
        nested.starts = prepare_starts(nested, task)
        model = super().build_model(nested, task)
        assert isinstance(model, TransformerLMFusion)
        autocast_recomputations(model, nested.cpu_bf16)
        keep_symbols(model, task)
        truncate_to_model(task, model)
        for fusion, stack in model.fusions():
            if nested.checkpoint_activations and fusion.trains_lm:
                recompute_layers(fusion.lm)
            if stack is model.encoder and not fusion.replaces_embeddings:
                model.decoder.read_source(fusion)
        for side, (fusion, _) in nested.starts.items():
            fusion.load_into(getattr(model, STACKS[side]))
        del nested.starts
        speed_up(model, products=not nested.quant_noise.scalar, attention=not nested.quant_noise.pq)
        model.begin(cfg, nested, described)
        return model

    @classmethod
    def build_encoder(cls, cfg: Any, src_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """Build fairseq's encoder, with the source LM if there is one."""
        if integration(cfg, "src") is None or starts_stack(cfg, "src"):
            return super().build_encoder(_config_of(cfg, "src"), src_dict, embed_tokens)
        encoder_cfg = stack_config(cfg, "src")
        fusion, side = build_fusion(cfg, "src", src_dict)
        fusion.configure(encoder_cfg)
        if fusion.replaces_embeddings:
            return LMFusionEncoder(encoder_cfg, src_dict, SourceEmbedding(fusion, src_dict, side.width))
        return LMFusionEncoder(encoder_cfg, src_dict, embed_tokens, SourceReader(fusion, src_dict))

    @classmethod
    def build_decoder(cls, cfg: Any, tgt_dict: Dictionary, embed_tokens: nn.Module) -> nn.Module:
        """Build fairseq's decoder, with the target LM if there is one, and able to read the source LM beside it."""
        decoder_cfg = _config_of(cfg, "tgt")
        if integration(cfg, "tgt") is None or starts_stack(cfg, "tgt"):
            if not read_by_layers(cfg, "src"):
                return super().build_decoder(decoder_cfg, tgt_dict, embed_tokens)
            return LMFusionDecoder(decoder_cfg, tgt_dict, embed_tokens)
        fusion, side = build_fusion(cfg, "tgt", tgt_dict)
        fusion.configure(decoder_cfg)
        if fusion.replaces_embeddings:
            return LMFusionDecoder(decoder_cfg, tgt_dict, TargetEmbedding(fusion, tgt_dict, side.width))
        return LMFusionDecoder(decoder_cfg, tgt_dict, embed_tokens, TargetReader(fusion, tgt_dict))

    def forward(self, *args: Any, head: Head | None = None, **kwargs: Any) -> Any:
        """Compute logits as fairseq's transformer does.

        Args:
            head: function of features (B x T x C) and output embeddings (V x C) whose result replaces the logits.

        Raises:
            InputError: if an LM inside never got its weights, or a head is given to an adaptive softmax.
        """
        self.check_weights()
        if head is not None and self.decoder.adaptive_softmax is not None:
            raise InputError(
                "--adaptive-softmax-cutoff computes no full logits: leave out that flag, or chunked_ in --criterion."
            )
        with training_autocast(self, self.cpu_bf16):
            if head is None:
                return super().forward(*args, **kwargs)
            features, extra = super().forward(*args, **{**kwargs, "features_only": True})
            return head(features, self.decoder.output_projection.weight), extra


def _config_of(cfg: Any, side: str) -> Any:
    """Return the configuration of a side's stack, as its language model made it where the stack starts from one."""
    return cfg.starts[side][1] if side in cfg.starts else stack_config(cfg, side)


def _fusion_names() -> Any:
    return [name for name in FusionConfig.__dataclass_fields__ if name.startswith(("src_", "tgt_"))]
