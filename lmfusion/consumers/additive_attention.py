"""Additive attention (Bahdanau, Cho and Bengio 2015, appendix A.1.2) in the place of fairseq's."""

from __future__ import annotations

import torch
from fairseq.models.lstm import AttentionLayer, Linear
from torch import Tensor


class AdditiveAttention(AttentionLayer):
    """Attention with the scores ``v tanh(W s + U h)``; the sum over the source and its use are fairseq's.

    ``U h`` is the same for all target words: :meth:`read` computes it once, and :meth:`forget` drops it.

    Args:
        input_dim: channels of the decoder's state s.
        source_dim: C, channels of the encoder's states h.
        output_dim: channels of the result.
    """

    def __init__(self, input_dim: int, source_dim: int, output_dim: int) -> None:
        super().__init__(input_dim, source_dim, output_dim)
        self.source_proj = Linear(source_dim, source_dim, bias=False)
        self.score = Linear(source_dim, 1, bias=False)
        self._keys: Tensor | None = None

    def read(self, source: Tensor) -> None:
        """Take the encoder's states, S x B x C, of the target words that come next."""
        self._keys = self.source_proj(source)

    def forget(self) -> None:
        """Drop what :meth:`read` has computed."""
        self._keys = None

    def forward(self, state: Tensor, source: Tensor, padding: Tensor | None) -> tuple[Tensor, Tensor]:
        """Attend from one target word to the source.

        Args:
            state: of the decoder, B x input_dim.
            source: states of the encoder, S x B x C.
            padding: S x B, True at padding.

        Returns:
            B x output_dim, and the attention, S x B.
        """
        assert self._keys is not None
        scores = self.score(torch.tanh(self._keys + self.input_proj(state))).squeeze(-1).float()
        if padding is not None:
            scores = scores.masked_fill(padding, float("-inf"))
        weights = torch.softmax(scores, dim=0).type_as(source)
        context = (weights.unsqueeze(-1) * source).sum(dim=0)
        return torch.tanh(self.output_proj(torch.cat((context, state), dim=1))), weights
