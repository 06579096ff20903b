"""Fine-tuning: the LM's top state as representation, trained on (Edunov et al. 2019, section 2.2)."""

from __future__ import annotations

import torch.nn.functional as F
from torch import Tensor, nn

from lmfusion.fusion.elmo import make_projection
from lmfusion.lm.interface import IncrementalState, PretrainedLM


class FinetunedRepresentation(nn.Module):
    """``dropout(W top(LM))``; the LM is trained with everything else.

    Args:
        lm: unfrozen here.
        output_dim: C of the sequence-to-sequence model. W (bias-free) is there where sizes differ.
        dropout: dropout of the result.
    """

    def __init__(self, lm: PretrainedLM, output_dim: int, *, dropout: float) -> None:
        super().__init__()
        self.lm = lm.unfreeze()
        lm.drop_softmax()
        self.projection = make_projection(lm.embed_dim, output_dim)
        self.output_dim = output_dim
        self.dropout = dropout

    def forward(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None
    ) -> Tensor:
        """Represent: B x T -> B x T x C (only new T with ``incremental_state``)."""
        x = self.lm.top_state(tokens, incremental_state)
        if self.projection is not None:
            x = self.projection(x)
        return F.dropout(x, self.dropout, self.training)
