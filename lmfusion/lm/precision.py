"""Train in bf16 on CPUs that have it, and load in float32 whatever torch's default is.

fairseq's ``--bf16`` and ``--fp16`` are for GPUs. On a CPU with bf16 units autocast takes the matrix
products of a training step in bf16 while weights, gradients and optimizer stay in fp32.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn

PRIMITIVE_CACHE = "ONEDNN_PRIMITIVE_CACHE_CAPACITY"
KEPT_PRODUCTS = 128
"""Products that oneDNN keeps of a training in bf16: see ``_keep_few_products``."""


@functools.cache
def _keep_few_products() -> None:
    """Let oneDNN keep few of the products that it has compiled, unless the user has said how many.

    It takes products in bf16 on a CPU, compiles each shape, and keeps 1,024 of them with their memory. The batches of a
    training differ in shape, so that is hundreds of megabytes to gigabytes for models of a few (``lmfusion bench
    primitive_cache``). oneDNN reads the variable once, at the first such product of the process.
    """
    os.environ.setdefault(PRIMITIVE_CACHE, str(KEPT_PRODUCTS))


def training_autocast(model: nn.Module, cpu_bf16: bool) -> AbstractContextManager[Any]:
    """Return a context of bf16 autocast if ``model`` trains on a CPU and ``cpu_bf16`` is set; else one without effect.

    Evaluation and decoding stay in fp32: they are compared to the last digit, and their small
    matrix products gain nothing.

    Args:
        model: whose mode and device decide.
        cpu_bf16: the flag of that name.
    """
    if cpu_bf16 and model.training and next(model.parameters()).device.type == "cpu":
        _keep_few_products()
        return torch.autocast("cpu", dtype=torch.bfloat16)
    return nullcontext()


def autocast_recomputations(model: nn.Module, cpu_bf16: bool) -> None:
    """Make layers under ``--checkpoint-activations`` use autocast when the backward pass computes them again, too.

    fairseq's wrapper does not enter autocast again there.

    Args:
        model: the whole model; it is changed.
        cpu_bf16: the flag of that name; without it nothing changes.
    """
    layer: Any
    for layer in model.modules():
        if cpu_bf16 and hasattr(layer, "precheckpoint_forward"):
            # No closure: a copy of the model, as --store-ema makes one, would compute with this model's layers.
            layer.precheckpoint_forward = functools.partial(_in_autocast, layer, layer.precheckpoint_forward)
            wrapper = layer.forward
            layer.forward = functools.partial(wrapper.func, layer.precheckpoint_forward, *wrapper.args[1:])


def _in_autocast(module: nn.Module, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    with training_autocast(module, True):
        return forward(*args, **kwargs)


@contextmanager
def single_precision() -> Iterator[None]:
    """Make new weights float32: of another default of torch, those that are read into them would be rounded."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


CPU_BF16_HELP = (
    "on a CPU, take the matrix products of training steps in bfloat16 (faster where the CPU has "
    "bf16 units, slower elsewhere); ignored on a GPU, where --bf16 or --fp16 do it"
)
