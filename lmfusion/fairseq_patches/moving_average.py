"""``--store-ema``: with a language model inside, and with weights that have several names, as tied embeddings have."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Any, Callable

from torch import Tensor, nn

from lmfusion.fairseq_patches.patch import Patch

EMA = "fairseq.models.ema.ema:EMA"


def fixed_entries(model: nn.Module) -> set[str]:
    """Return the names of what training does not move: whole numbers, and parameters that are frozen for good."""
    numbers = {
        name
        for name, value in model.state_dict().items()
        if isinstance(value, Tensor) and not value.is_floating_point()
    }
    return numbers | {name for name, parameter in model.named_parameters() if not parameter.requires_grad}


def further_names(model: nn.Module) -> dict[str, str]:
    """Return the further names that tensors of a state dict have, each with the first of the same tensor."""
    first: dict[Any, str] = {}
    tensors = {name: value for name, value in model.state_dict().items() if isinstance(value, Tensor) and value.numel()}
    places = {name: (each.data_ptr(), each.shape, each.stride(), each.device) for name, each in tensors.items()}
    return {name: known for name, place in places.items() if (known := first.setdefault(place, name)) != name}


def copy_what_does_not_move(original: Callable[..., None]) -> Callable[..., None]:
    """Make fairseq's ``EMA`` copy fixed entries of a state dict instead of multiplying them by the decay.

    Of a tensor with several names it keeps one average in full precision, not one for each.
    """

    def init(self: Any, model: nn.Module, config: Any, device: Any = None, skip_keys: Any = None) -> None:
        original(self, model, config, device, {*(skip_keys or ()), *fixed_entries(model)})
        self.further_names = further_names(self.model)  # which names share a tensor stays so: not for every step
        for name, known in self.further_names.items():
            if known in self.fp32_params:
                self.fp32_params[name] = self.fp32_params[known]

    return init


class _EachTensorOnce:
    """What ``EMA`` reads of a model, its state dict, without the further names of tensors."""

    def __init__(self, model: nn.Module, left_out: Container[str]) -> None:
        self._model, self._left_out = model, left_out

    def state_dict(self) -> dict[str, Any]:
        """Return the entries that are averaged."""
        return {name: value for name, value in self._model.state_dict().items() if name not in self._left_out}


def average_each_tensor_once(original: Callable[..., None]) -> Callable[..., None]:
    """Make a step of fairseq's ``EMA`` decay a tensor once, however many names its state dict has for it."""

    def step(self: Any, new_model: nn.Module, updates: Any = None) -> None:
        original(self, _EachTensorOnce(new_model, self.further_names), updates)

    return step


def keep_the_version(original: Callable[..., None]) -> Callable[..., None]:
    """Make fairseq's ``EMA`` take weights as those of the version of transformer that its model is."""

    def restore(self: Any, state_dict: Mapping[str, Any], build_fp32_params: bool = False) -> None:
        own = {name: value for name, value in self.model.state_dict().items() if name.rpartition(".")[2] == "version"}
        original(self, {**state_dict, **own}, build_fp32_params)

    return restore


ROWS = (
    Patch(
        EMA,
        "__init__",
        copy_what_does_not_move,
        "--store-ema with a language model inside ends in a RuntimeError (code points of its dictionary, in bytes, "
        "times a decay), and would round a frozen LM's weights.",
    ),
    Patch(
        EMA,
        "_step_internal",
        average_each_tensor_once,
        "--store-ema decays tied embeddings once for each of their names: twice or three times an update, so that "
        "their average runs ahead of all others.",
    ),
    Patch(
        EMA,
        "restore",
        keep_the_version,
        "--store-ema of --encoder-normalize-before or --decoder-normalize-before loses the last layer norm at the "
        "first update: the weights it hands on name no version, so they are taken for those of an early transformer.",
    ),
)
