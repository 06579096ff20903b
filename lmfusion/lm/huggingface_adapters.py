"""Low-rank adapters in a model of transformers (Hu et al. 2021, LoRA), by the package peft."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

from torch import nn
from typing_extensions import Self

from lmfusion.errors import InputError
from lmfusion.lm.huggingface_config import ADAPTER
from lmfusion.lm.interface import PretrainedLM
from lmfusion.text.import_transformers import import_transformers

SCALE = 2
"""Factor on an adapter's output, ``alpha / r``."""


class AdaptableLM(PretrainedLM):
    """A language model around a model of transformers, which may have adapters.

    Attributes:
        model: of transformers.
    """

    model: Any

    def build_adapters(self) -> None:
        """Add the adapters that the configuration asks for."""
        if self.config["lora"] is not None:
            add_adapters(self.model, self.config["lora"])

    def adapted(self, rank: int | None) -> PretrainedLM:
        """Return the model with low-rank adapters of this rank, which alone are trained; as it is without a rank.

        Raises:
            InputError: if it has adapters already.
        """
        if rank is not None:
            if self.config["lora"] is not None:
                raise InputError(
                    f"the language model has adapters of rank {self.config['lora']} already: leave it out."
                )
            self.config["lora"] = rank
            self.build_adapters()
        return self

    def unfreeze(self) -> Self:
        """Make all weights trainable, or the adapters alone where there are such."""
        super().unfreeze()
        if self.config["lora"] is not None:
            for name, weight in self.named_parameters():
                weight.requires_grad_(ADAPTER in name)
        return self

    def make_generation_fast_(self, **_: Any) -> None:
        """Add the adapters to the weights that they stand beside: fairseq calls it before decoding.

        States are the same to rounding, at the cost of a model without adapters. Weights are not written after it.
        """
        if self.config["lora"] is not None:
            from peft.tuners.tuners_utils import BaseTunerLayer

            for part in self.model.modules():
                if isinstance(part, BaseTunerLayer) and not part.merged:
                    part.merge()

    def pretrained_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters by name, without those of adapters, which start at random."""
        return ((name, weight) for name, weight in self.named_parameters() if ADAPTER not in name)


def add_adapters(model: nn.Module, rank: int) -> None:
    """Put an adapter beside every linear layer of a model: ``W x + 2 B A x`` with A of rank x in, B of out x rank.

    B is zero at first, so that states do not change.

    Args:
        model: of transformers; it is changed.
        rank: of the adapters.

    Raises:
        InputError: if peft is not installed, or the rank is none.
    """
    if not isinstance(rank, int) or not 1 <= rank <= _narrowest(model):
        raise InputError(
            f"low-rank adapters of rank {rank!r}: give a number from 1 to {_narrowest(model)}, the channels of the "
            f"narrowest layer; 8 is a common one."
        )
    peft = _import_peft()
    settings = peft.LoraConfig(r=rank, lora_alpha=SCALE * rank, target_modules="all-linear", lora_dropout=0.0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="fan_in_fan_out")  # of GPT-2's layers, which it then sets right
        peft.inject_adapter_in_model(settings, model)


def _narrowest(model: nn.Module) -> int:
    layers = [part for part in model.modules() if not isinstance(part, nn.Embedding)]
    shapes = [weight.shape for layer in layers for weight in layer.parameters(recurse=False)]
    return min((min(shape) for shape in shapes if len(shape) == 2), default=1)


def _import_peft() -> Any:
    import_transformers()  # peft imports what a torchaudio that does not fit would stop
    try:
        import peft
    except ModuleNotFoundError as error:
        raise InputError(f"low-rank adapters need the package {error.name}: pip install lmfusion[lora].") from error
    return peft
