"""Target language models without their cache: how the paper's released code decodes."""

from __future__ import annotations

from collections.abc import Set as AbstractSet

from torch import Tensor

from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.interface import IncrementalState, LMStates


class Uncached:
    """Makes a model's target LM read the whole prefix at every step; the decoder keeps its cache.

    Args:
        model: changed for good; :attr:`active` can be switched off to get to a position quickly.
    """

    def __init__(self, model: TransformerLMFusion) -> None:
        self.active = True
        lm = model.decoder.embed_tokens.lm
        read = lm.states

        def states(
            tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
        ) -> LMStates:
            if incremental_state is None or not self.active:
                return read(tokens, incremental_state, want=want)
            found = read(tokens, want=want)
            top = None if found.top is None else found.top[:, -1:]
            return LMStates([state[:, -1:] for state in found.layers], found.names, top)

        lm.states = states
