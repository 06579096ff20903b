"""Freeze the weights of a whole model, or of its lower layers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from torch import nn
from typing_extensions import Self

from lmfusion.errors import InputError


class Freezable(nn.Module):
    """A model whose weights can be frozen as a whole or from below.

    Attributes:
        token_embedding: ids -> vectors, before scale, positions and norms.
        frozen: True if all weights are frozen and :meth:`train` is without effect.
    """

    token_embedding: nn.Module
    frozen: bool = False

    def modules_from_below(self) -> list[list[nn.Module]]:
        """Return the modules of the embeddings, then those of each layer: N + 1 lists; modules above are in none."""
        return [[self.token_embedding]]

    def freeze(self) -> Self:
        """Freeze all weights and switch dropout off for good: :meth:`train` no longer does anything."""
        self.frozen = True
        self.requires_grad_(False)
        return self.eval()

    def unfreeze(self) -> Self:
        """Make all weights trainable again; call :meth:`train` to switch dropout on."""
        self.frozen = False
        return self.requires_grad_(True)

    def freeze_layers(self, count: int) -> None:
        """Freeze the embeddings and the lowest layers.

        Args:
            count: number of layers; with 0 nothing is frozen, not even the embeddings.

        Raises:
            InputError: if there are not as many layers, or nothing would be left to train.
        """
        below = self.modules_from_below()
        if count and len(below) == 1:
            raise InputError(
                f"a {type(self).__qualname__} names no layers that could be frozen alone (modules_from_below)."
            )
        if not 0 <= count < len(below):
            raise InputError(f"the language model has {len(below) - 1} layers, and {count} of them cannot be frozen.")
        for module in [module for layer in below[: count + 1] for module in layer] if count else []:
            module.requires_grad_(False)
        if not any(parameter.requires_grad for parameter in self.parameters()):
            raise InputError(
                f"with {count} frozen layers nothing of the language model would be trained: freeze fewer, or use the "
                f"frozen model by elmo."
            )

    def pretrained_parameters(self) -> Iterator[tuple[str, nn.Parameter]]:
        """Yield the parameters that come from pretraining, by name."""
        return self.named_parameters()

    def train(self, mode: bool = True) -> Self:
        """Switch dropout on or off like :meth:`torch.nn.Module.train`; a frozen model stays in eval mode."""
        return super().train(mode and not self.frozen)


def state_fingerprint(module: nn.Module) -> str:
    """Return the SHA-256 (hex) over names, shapes and float32 values of a module's pretrained parameters.

    The same weights give the same fingerprint whether they are kept in half or single precision
    only if they are representable in both; lmfusion takes it after loading, in float32.
    """
    digest = hashlib.sha256()
    parameters = module.pretrained_parameters() if isinstance(module, Freezable) else module.named_parameters()
    for name, parameter in sorted(parameters):
        values = parameter.detach().to("cpu").float().contiguous()
        digest.update(f"{name}{tuple(values.shape)}".encode())
        digest.update(values.numpy().tobytes())
    return digest.hexdigest()
