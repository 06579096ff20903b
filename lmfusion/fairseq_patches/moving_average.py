"""``--store-ema`` with a language model inside."""

from __future__ import annotations

from typing import Any, Callable

from torch import Tensor, nn


def fixed_entries(model: nn.Module) -> set[str]:
    """Return the names of what training does not move: whole numbers, and parameters that are frozen for good."""
    numbers = {
        name
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor) and not value.is_floating_point()
    }
    return numbers | {name for name, parameter in model.named_parameters() if not parameter.requires_grad}


def copy_what_does_not_move(original: Callable[..., None]) -> Callable[..., None]:
    """Make fairseq's ``EMA`` copy fixed entries of a state dict instead of multiplying them by the decay."""

    def init(self: Any, model: nn.Module, config: Any, device: Any = None, skip_keys: Any = None) -> None:
        original(self, model, config, device, {*(skip_keys or ()), *fixed_entries(model)})

    return init
