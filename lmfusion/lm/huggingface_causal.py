"""The family ``huggingface_causal``: decoders of transformers, from a local folder."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Any

import torch
from torch import Tensor

from lmfusion.lm.huggingface import HuggingFaceLM
from lmfusion.lm.interface import LAYERS, IncrementalState, LMStates, register_lm
from lmfusion.lm.vocabulary import BOS

_STATE = "lmfusion.huggingface"  # in fairseq's decoding state


@register_lm("huggingface_causal")
class HuggingFaceCausalLM(HuggingFaceLM):
    """A decoder of transformers without its softmax: GPT-2, Llama, Qwen and others of :data:`KINDS`.

    In decoding, the keys and values of each layer stand in fairseq's decoding state.
    """

    title = "causal language model of Hugging Face"
    pooling = "last"
    sees_future = False
    incremental = True
    reads_left_to_right = True

    def model_rows(self, rows: Tensor) -> Tensor:
        """Turn left-aligned rows into the model's ids; fairseq's targets begin with </s>, the model's with its BOS."""
        ids = super().model_rows(rows)
        bos = self.vocabulary.model_ids[self.vocabulary.index[BOS]]
        first = torch.where(rows[:, :1].eq(self.vocabulary.closing), bos, ids[:, :1])
        return torch.cat([first, ids[:, 1:]], dim=1)

    def _options(self, rows: Tensor) -> dict[str, Any]:
        """Return that no keys and values are kept."""
        return {"use_cache": False}

    def states(
        self, tokens: Tensor, incremental_state: IncrementalState | None = None, *, want: AbstractSet[str]
    ) -> LMStates:
        """Compute states as :meth:`HuggingFaceLM.states`, or those of the positions behind the cached ones."""
        if incremental_state is None:
            return super().states(tokens, want=want)
        from transformers.cache_utils import DynamicCache

        self.check_length(tokens.size(1))
        kept = incremental_state.get(_STATE) or {}
        pairs = [(kept[f"key {layer}"], kept[f"value {layer}"]) for layer in range(len(kept) // 2)]
        # Without a config every layer keeps all positions: rows then stay as long as fairseq's, also with a window.
        cache = DynamicCache(pairs or None)
        seen = int(cache.get_seq_length())
        found = self.model(
            input_ids=self.model_rows(tokens)[:, seen:],
            past_key_values=cache,
            use_cache=True,
            output_hidden_states=LAYERS in want,
        )
        grown: dict[str, Tensor | None] = {}
        for number, layer in enumerate(cache.layers):
            grown |= {f"key {number}": layer.keys, f"value {number}": layer.values}
        incremental_state[_STATE] = grown
        return self._wanted(found, want)

    def reorder_incremental_state(self, incremental_state: IncrementalState, new_order: Tensor) -> None:
        """Reorder keys and values with the beam: row b becomes former row ``new_order[b]``."""
        for name, kept in (incremental_state.get(_STATE) or {}).items():
            assert kept is not None
            incremental_state[_STATE][name] = kept.index_select(0, new_order)
