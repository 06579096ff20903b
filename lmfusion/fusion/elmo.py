"""ELMo augmentation: a frozen LM, a learned mix of its layers (Edunov et al. 2019, section 2.1)."""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor, nn

from lmfusion.fusion.reading import StateList
from lmfusion.fusion.scalar_mix import ScalarMix
from lmfusion.lm.interface import IncrementalState, PretrainedLM
from lmfusion.operations import dropout


class ElmoRepresentation(nn.Module):
    """``W mix(LM layers)``; only the mix and W are trained.

    Args:
        lm: frozen here, for good.
        output_dim: C of the sequence-to-sequence model. W (bias-free) is there where it is not C'.
        elmo_dropout: dropout of the mixing weights.
        affine: learned scale and shift of the layer norm.
        dropout: dropout of the result.
        states: which of the LM's states are mixed; by default all.
        stored: in training, gives ``lm.layer_states(tokens)`` from where it was stored.
    """

    def __init__(
        self,
        lm: PretrainedLM,
        output_dim: int,
        *,
        elmo_dropout: float,
        affine: bool,
        dropout: float,
        states: StateList | None = None,
        stored: Callable[[Tensor], list[Tensor]] | None = None,
    ) -> None:
        super().__init__()
        self.lm = lm.freeze()
        lm.drop_softmax()
        self.states = states
        self.stored = stored
        state_dim = lm.state_dim if states is None else states.state_dim(lm)
        num_states = lm.num_states if states is None else len(states.names(lm.num_layers))
        self.mix = ScalarMix(num_states, state_dim, dropout=elmo_dropout, affine=affine)
        self.projection = make_projection(state_dim, output_dim)
        self.output_dim = output_dim
        self.dropout = dropout

    def forward(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None
    ) -> Tensor:
        """Represent: B x T -> B x T x C (only new T with ``incremental_state``)."""
        with torch.no_grad():
            if self.stored is not None and self.training:
                states = self.stored(tokens)
            else:
                states = self.lm.layer_states(tokens, incremental_state)
            if self.states is not None:
                states = self.states(self.lm, tokens, states)
        x = self.mix(states)
        if self.projection is not None:
            x = self.projection(x)
        return dropout(x, self.dropout, self.training)


def make_projection(input_dim: int, output_dim: int) -> nn.Linear | None:
    """A bias-free projection where two sizes differ, else None."""
    if input_dim == output_dim:
        return None
    projection = nn.Linear(input_dim, output_dim, bias=False)
    nn.init.xavier_uniform_(projection.weight)
    return projection
