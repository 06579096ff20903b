"""Compute a trained language model's layers again in the pass backward instead of keeping what they made.

This is ``--checkpoint-activations`` for language models. fairseq's wrapper, which layers of its stacks get, gives the
weights of a layer no gradient where the layers below are frozen; PyTorch's does (``use_reentrant=False``).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from lmfusion.lm.freezing import Freezable


def recompute_layers(lm: Freezable) -> None:
    """Make every layer with weights that are trained keep its inputs alone in training steps.

    Args:
        lm: whose layers are changed; what they compute, dropout included, stays the same within rounding.
    """
    for modules in lm.modules_from_below()[1:]:
        for module in modules:
            if any(parameter.requires_grad for parameter in module.parameters()):
                module.forward = functools.partial(_recomputed, module, module.forward)


def _recomputed(module: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    if not (module.training and torch.is_grad_enabled()):
        return forward(*args, **kwargs)
    return checkpoint(forward, *args, use_reentrant=False, **kwargs)


RECOMPUTATION_HELP = "keep each layer's input alone in training and compute the layer again in the pass backward"
