"""Fine-tuning: the LM's top state as representation, trained on (Edunov et al. 2019, section 2.2)."""

from __future__ import annotations

from contextlib import nullcontext

import torch
from torch import Tensor, nn

from lmfusion.fusion.elmo import make_projection
from lmfusion.fusion.learning_rates import LearningRate, set_learning_rate
from lmfusion.lm.interface import IncrementalState, PretrainedLM
from lmfusion.operations import dropout


class FinetunedRepresentation(nn.Module):
    """``dropout(W top(LM))``; the LM is trained with everything else.

    Args:
        lm: unfrozen here.
        output_dim: C of the sequence-to-sequence model. W (bias-free) is there where sizes differ.
        dropout: dropout of the result.
        frozen_layers: embeddings and this many lower layers keep their pretrained weights; 0: all is trained.
        rate: of the LM; its frozen updates at the beginning are run without gradients.

    Raises:
        UserError: if the LM has no single top state, or the frozen layers leave nothing to train.
    """

    def __init__(
        self,
        lm: PretrainedLM,
        output_dim: int,
        *,
        dropout: float,
        frozen_layers: int = 0,
        rate: LearningRate | None = None,
    ) -> None:
        super().__init__()
        lm.check_top_state()
        self.lm = lm.unfreeze()
        lm.drop_softmax()
        lm.freeze_layers(frozen_layers)
        self.rate = rate or LearningRate()
        if not self.rate.is_plain:
            set_learning_rate(lm, self.rate)
        self.projection = make_projection(lm.embed_dim, output_dim)
        self.output_dim = output_dim
        self.dropout = dropout

    def forward(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None
    ) -> Tensor:
        """Represent: B x T -> B x T x C (only new T with ``incremental_state``)."""
        with nullcontext() if not self.rate.frozen else torch.no_grad():
            x = self.lm.top_state(tokens, incremental_state)
        if self.projection is not None:
            x = self.projection(x)
        return dropout(x, self.dropout, self.training)

    def set_num_updates(self, num_updates: int) -> None:
        """fairseq says before every step how many updates there have been."""
        self.rate.num_updates = num_updates
