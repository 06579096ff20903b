"""The source side: representations as the encoder's word embeddings (SPEC section 2)."""

from __future__ import annotations

from typing import Any

import torch
from fairseq.data import Dictionary
from fairseq.models.transformer import TransformerEncoderBase
from torch import Tensor, nn

from lmfusion.lm.interface import PretrainedLM
from lmfusion.lm.transformer.layout import RowLayout


class SourceEmbedding(nn.Module):
    """Looks like an embedding to fairseq's encoder.

    The LM was trained on ``</s> w1 ... wn </s>`` and fairseq's source is ``w1 ... wn </s>``: the
    leading </s> is added for the LM and its state dropped again.

    Args:
        representation: of either strategy; ``(B x T tokens) -> B x T x C``, attributes ``lm`` and
            ``output_dim``.
        leading_eos: add it; models converted from the released code may do without.
    """

    def __init__(self, representation: nn.Module, *, leading_eos: bool = True) -> None:
        super().__init__()
        self.representation = representation
        self.leading_eos = leading_eos
        lm = representation.lm
        assert isinstance(lm, PretrainedLM)
        self.padding_idx = lm.padding_idx
        self.eos_idx = lm.eos_idx
        self.num_embeddings = len(lm.symbols)
        self.embedding_dim = representation.output_dim

    @property
    def lm(self) -> PretrainedLM:
        """The language model inside."""
        lm = self.representation.lm
        assert isinstance(lm, PretrainedLM)
        return lm

    def forward(self, src_tokens: Tensor) -> Tensor:
        """B x S, padding on either side -> B x S x C; zero at padding."""
        layout = RowLayout(src_tokens.eq(self.padding_idx))
        words = layout.align(src_tokens)
        leading = words.new_full((words.size(0), int(self.leading_eos)), self.eos_idx)
        x = self.representation(torch.cat([leading, words], dim=1))[:, leading.size(1) :]
        x = x.masked_fill(layout.padding.unsqueeze(-1), 0.0)
        return layout.restore(x)


class LMFusionEncoder(TransformerEncoderBase):
    """fairseq's encoder on a :class:`SourceEmbedding`: no longer than its LM allows."""

    def __init__(self, cfg: Any, dictionary: Dictionary, embed_tokens: SourceEmbedding) -> None:
        super().__init__(cfg, dictionary, embed_tokens)
        if cfg.src_embed_scale is not None:
            self.embed_scale = cfg.src_embed_scale

    def max_positions(self) -> int:
        """Longest source in tokens, final </s> included."""
        return min(super().max_positions(), self.embed_tokens.lm.max_positions())
