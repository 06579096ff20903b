"""The target side: representations as the decoder's word embeddings (SPEC section 2)."""

from __future__ import annotations

from typing import Any

from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerDecoderBase
from torch import Tensor, nn

from lmfusion.lm.interface import IncrementalState, PretrainedLM


class TargetEmbedding(nn.Module):
    """Looks like an embedding to fairseq's decoder.

    While decoding, fairseq's decoder looks up the last token alone. What an LM says of it depends
    on the whole prefix, so :class:`LMFusionDecoder` hands over prefix and decoding state first.

    Args:
        representation: of either strategy; attributes ``lm`` and ``output_dim``.
    """

    def __init__(self, representation: nn.Module) -> None:
        super().__init__()
        self.representation = representation
        lm = representation.lm
        assert isinstance(lm, PretrainedLM)
        self.padding_idx = lm.padding_idx
        self.num_embeddings = len(lm.symbols)
        self.embedding_dim = representation.output_dim
        self._prefix: tuple[Tensor, IncrementalState] | None = None

    @property
    def lm(self) -> PretrainedLM:
        """The language model inside."""
        lm = self.representation.lm
        assert isinstance(lm, PretrainedLM)
        return lm

    def announce(self, prefix: Tensor, incremental_state: IncrementalState | None) -> None:
        """The next look-up is of the last token of this prefix (B x T), or of all of it without a decoding state."""
        self._prefix = None if incremental_state is None else (prefix, incremental_state)

    def forward(self, tokens: Tensor) -> Tensor:
        """B x T -> B x T x C; after :meth:`announce` B x 1 -> B x 1 x C."""
        if self._prefix is None:
            return self.representation(tokens)
        (prefix, state), self._prefix = self._prefix, None
        return self.representation(prefix, state)[:, -1:]


class LMFusionDecoder(TransformerDecoderBase):
    """fairseq's decoder on a :class:`TargetEmbedding`, with output embeddings of its own."""

    def __init__(self, cfg: Any, dictionary: Dictionary, embed_tokens: TargetEmbedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens, no_encoder_attn=cfg.no_cross_attention)
        if cfg.tgt_embed_scale is not None:
            self.embed_scale = cfg.tgt_embed_scale

    def extract_features_scriptable(
        self,
        prev_output_tokens: Tensor,
        encoder_out: Any,
        incremental_state: IncrementalState | None = None,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        """As in fairseq; the LM keeps its keys and values in ``incremental_state``."""
        self.embed_tokens.announce(prev_output_tokens, incremental_state)
        return super().extract_features_scriptable(
            prev_output_tokens, encoder_out, incremental_state, *args, **kwargs
        )

    def reorder_incremental_state_scripting(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """As in fairseq, which asks every module at every step whether it can be reordered, at a dear price.

        Asking its class is quick: a module looks through its parameters, buffers and children before it says no.
        """
        for module in self.modules():
            if hasattr(type(module), "reorder_incremental_state"):
                module.reorder_incremental_state(incremental_state, new_order)

    def max_positions(self) -> int:
        """Longest target in tokens, </s> included."""
        return min(super().max_positions(), self.embed_tokens.lm.max_positions())
