"""Target language models without their cache: how the paper's released code decodes."""

from __future__ import annotations

from typing import Any, Callable

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
        lm.states = self._forgetful(lm.states)

    def _forgetful(self, read: Callable[..., LMStates]) -> Callable[..., LMStates]:
        def states(tokens: Tensor, incremental_state: IncrementalState | None = None, **wanted: Any) -> LMStates:
            if incremental_state is None or not self.active:
                return read(tokens, incremental_state, **wanted)
            found = read(tokens, **wanted)
            top = None if found.top is None else found.top[:, -1:]
            return LMStates([layer[:, -1:] for layer in found.layers], found.names, top)

        return states
