"""``--store-ema`` with a language model inside: what does not move is copied, not averaged.

fairseq multiplies every entry of a state dict by the decay, the dictionary's code points included.
"""

from __future__ import annotations

from typing import Any, Callable

from fairseq.models.ema.ema import EMA
from torch import Tensor, nn


def fixed_entries(model: nn.Module) -> set[str]:
    """Names of what training does not move: whole numbers, and parameters that are frozen for good."""
    numbers = {
        name
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor) and not value.is_floating_point()
    }
    return numbers | {name for name, parameter in model.named_parameters() if not parameter.requires_grad}


def install() -> None:
    """Make fairseq do so; safe to call again."""
    original: Callable[..., None] = EMA.__init__
    if getattr(original, "knows_fixed", False):
        return

    def init(self: EMA, model: nn.Module, config: Any, device: Any = None, skip_keys: Any = None) -> None:
        """fairseq's, with what is to be copied."""
        original(self, model, config, device, {*(skip_keys or ()), *fixed_entries(model)})

    init.knows_fixed = True  # type: ignore[attr-defined]
    EMA.__init__ = init
