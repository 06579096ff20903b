"""Target language models without their cache: how the paper's released code decodes."""

from __future__ import annotations

from typing import Any, Callable

from torch import Tensor

from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.interface import IncrementalState


class Uncached:
    """Makes a model's target LM read the whole prefix at every step; the decoder keeps its cache.

    Args:
        model: changed for good; :attr:`active` can be switched off to get to a position quickly.
    """

    def __init__(self, model: TransformerLMFusion) -> None:
        self.active = True
        lm = model.decoder.embed_tokens.lm
        lm.layer_states = self._forgetful(lm.layer_states, lambda states: [state[:, -1:] for state in states])
        lm.top_state = self._forgetful(lm.top_state, lambda state: state[:, -1:])

    def _forgetful(self, read: Callable[..., Any], last: Callable[[Any], Any]) -> Callable[..., Any]:
        def states(tokens: Tensor, incremental_state: IncrementalState | None = None) -> Any:
            if incremental_state is None or not self.active:
                return read(tokens, incremental_state)
            return last(read(tokens))

        return states
