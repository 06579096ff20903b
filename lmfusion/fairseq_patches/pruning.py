"""LayerDrop's pruning (``--model-overrides "{'decoder_layers_to_keep': …}"``) is for a model's own layers.

fairseq takes the layers of a language model inside for layers of the encoder or decoder that it stands in.
"""

from __future__ import annotations

from typing import Any, Callable

from fairseq import checkpoint_utils

_INSIDE = ".representation.lm."


def install() -> None:
    """Make fairseq leave them; safe to call again."""
    original: Callable[..., dict[str, Any]] = checkpoint_utils.prune_state_dict
    if getattr(original, "leaves_lms", False):
        return

    def prune_state_dict(state_dict: dict[str, Any], model_cfg: Any) -> dict[str, Any]:
        """fairseq's, of everything but language models inside."""
        inside = {name: value for name, value in state_dict.items() if _INSIDE in name}
        if not inside:
            return original(state_dict, model_cfg)
        own = {name: value for name, value in state_dict.items() if name not in inside}
        pruned = original(own, model_cfg)
        return state_dict if pruned is own else {**pruned, **inside}

    prune_state_dict.leaves_lms = True  # type: ignore[attr-defined]
    checkpoint_utils.prune_state_dict = prune_state_dict
