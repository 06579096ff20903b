"""The integration ``initialise``: an encoder or decoder that starts from a language model (Rothe et al. 2020)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.fusion.interface import DECODER, Fusion, Side, register_fusion
from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.stack import Weights

logger = logging.getLogger(__name__)

NEW, COPIED = "new", "copied"


@dataclass
class InitialiseConfig:
    """Flags of the integration ``initialise``."""

    initialise_layers: int | None = field(
        default=None, metadata={"help": "initialise: number of the LM's layers, from below (default: all)"}
    )
    initialise_cross: str | None = field(
        default=None,
        metadata={
            "help": "initialise: what attention to the encoder starts from: new (default) or copied, from the LM's "
            "self-attention",
            "sides": ("tgt",),
        },
    )


@register_fusion("initialise")
class InitialiseFusion(Fusion):
    """A warm start: encoder or decoder have the language model's sizes and, before training, its weights.

    Word embeddings, positions, layers and, in a decoder, the output projection are the language model's; attention to
    the encoder is new, or copied from self-attention (Rothe et al. 2020, arXiv 1907.12461, section 2). The language
    model itself is dropped: what is trained and saved is a transformer of fairseq's. Of a cloze LM it is the forward
    tower, whose words see all others from then on.

    Raises:
        InputError: if the language model has fewer layers than are asked for.
    """

    Config = InitialiseConfig
    title = "where the side's own layers start from; all of it is trained"
    replaces_embeddings = False
    needs_softmax = True
    trains_lm = True
    keeps_lm = False

    def __init__(self, lm: PretrainedLM, side: Side, config: InitialiseConfig) -> None:
        super().__init__(lm, side, config)
        self.side, self.config = side, config
        self.stack = lm.stack()
        self.count = len(self.stack.layers) if config.initialise_layers is None else config.initialise_layers
        if self.count > len(self.stack.layers):
            raise InputError(
                f"--{side.prefix}-initialise-layers {self.count}: the {lm.title} has {len(self.stack.layers)}."
            )

    @classmethod
    def refusal(cls, family: type[PretrainedLM]) -> str | None:
        """Refuse families that are no transformers of a kind that fairseq has; see :meth:`Fusion.refusal`."""
        return "has no layers as fairseq's transformer has them" if family.stack is PretrainedLM.stack else None

    @classmethod
    def check(cls, config: InitialiseConfig, flag: Callable[[str], str], run: Any) -> None:
        """Refuse numbers of layers below 1 and unknown starts of attention; see :meth:`Fusion.check`.

        Raises:
            InputError: naming the flag.
        """
        if config.initialise_layers is not None and config.initialise_layers < 1:
            raise InputError(f"{flag('initialise_layers')} {config.initialise_layers}: give 1 or more.")
        if config.initialise_cross not in (None, NEW, COPIED):
            raise InputError(f"{flag('initialise_cross')} {config.initialise_cross}: give {NEW} or {COPIED}.")

    def configure(self, model_config: Any) -> None:
        """Set sizes and kind of the side's stack to the language model's; see :meth:`Fusion.configure`.

        Raises:
            InputError: if the decoder's output embeddings are to be of a kind that the language model's cannot be.
        """
        if self.side.stack == DECODER:
            self._check_output(model_config)
        own, stack = getattr(model_config, self.side.stack), self.stack
        own.embed_dim, own.ffn_embed_dim, own.attention_heads = stack.embed_dim, stack.ffn_dim, stack.heads
        own.layers, own.normalize_before = self.count, stack.normalize_before
        own.learned_pos = stack.positions is not None
        model_config.activation_fn = stack.activation
        model_config.no_scale_embedding = not stack.scale_embedding
        model_config.layernorm_embedding = bool(stack.embedding_norm)
        model_config.no_token_positional_embeddings |= not stack.has_positions
        if self.side.stack == DECODER:
            own.input_dim = own.output_dim = stack.embed_dim
            model_config.no_decoder_final_norm = not stack.final_norm
        if stack.positions is not None:
            setattr(model_config, f"max_{self.side.name}_positions", stack.positions.size(0))
        logger.info(
            f"the {self.side.stack} is as its language model, whatever --{self.side.stack}-* say, and --activation-fn, "
            "--layernorm-embedding, --no-scale-embedding and --no-decoder-final-norm: "
            f"{stack.embed_dim} channels, {stack.ffn_dim} between, {stack.heads} heads, {self.count} layers"
        )

    def _check_output(self, model_config: Any) -> None:
        if model_config.share_decoder_input_output_embed and self.stack.output is not None:
            raise InputError(
                "--share-decoder-input-output-embed (SHDEMB) makes one matrix of the decoder's input and output "
                f"embeddings, and those of the {self.lm.title} differ: leave it out, or pretrain the LM with it."
            )
        if model_config.adaptive_softmax_cutoff:
            raise InputError(
                "--adaptive-softmax-cutoff has no place for the output embeddings of the language model that the "
                "decoder starts from: leave it out."
            )

    @torch.no_grad()
    def load_into(self, stack: nn.Module) -> None:
        """Copy the language model's weights into fairseq's encoder or decoder; see :meth:`Fusion.load_into`."""
        target: Any = stack
        rows = self.lm.vocabulary.ids(torch.arange(len(self.side.symbols)))
        target.embed_tokens.weight.copy_(self.stack.tokens[rows])
        target.embed_tokens.weight[target.padding_idx].zero_()
        if self.stack.positions is not None and target.embed_positions is not None:
            first = target.padding_idx + 1  # fairseq's number of the first position
            target.embed_positions.weight[first:].copy_(self.stack.positions)
        norms = {"layernorm_embedding": self.stack.embedding_norm, "layer_norm": self.stack.final_norm}
        for name, weights in norms.items():
            if weights:
                getattr(target, name).load_state_dict(weights)
        for number in range(self.count):  # by number: fairseq's list with LayerDrop, iterated, leaves layers out
            self._load_layer(target.layers[number], self.stack.layers[number])
        if self.side.stack == DECODER:
            output = self.stack.tokens if self.stack.output is None else self.stack.output
            target.output_projection.weight.copy_(output[rows])
        for module in target.modules():
            if isinstance(module, nn.LayerNorm):
                module.eps = self.stack.epsilon

    def _load_layer(self, layer: Any, weights: Weights) -> None:
        """Copy a layer's weights; attention to the encoder is left as it is, or is a copy of self-attention."""
        layer.self_attn.add_zero_attn = self.stack.zero_attention
        for name in ("bias_k", "bias_v"):
            if f"self_attn.{name}" in weights:
                setattr(layer.self_attn, name, nn.Parameter(torch.empty_like(weights[f"self_attn.{name}"])))
        others = {key: value for key, value in layer.state_dict().items() if key.startswith("encoder_attn")}
        if self.config.initialise_cross == COPIED:
            others = self._copied(layer, weights)
        layer.load_state_dict({**weights, **others})

    def _copied(self, layer: Any, weights: Weights) -> dict[str, Tensor]:
        cross: MultiheadAttention = layer.encoder_attn
        if not cross.qkv_same_dim:
            raise InputError(
                f"--tgt-initialise-cross {COPIED} needs an encoder of the decoder's {cross.embed_dim} channels, and it "
                f"has {cross.kdim}: give --encoder-embed-dim {cross.embed_dim}, or {NEW}."
            )
        return {
            key.replace("self_attn", "encoder_attn", 1): value
            for key, value in weights.items()
            if key.startswith("self_attn") and ".bias_" not in key
        }
