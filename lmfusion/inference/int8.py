"""Translation in 8-bit integers on a CPU, of any model: what linear layers multiply is rounded.

Weights are rounded once, with a scale for each output, and inputs at every call, with a scale for each call. Products
are summed in 32-bit integers. What is not a layer of its own, such as the attention of a language model's towers, whose
parts are multiplied one by one, stays in float32, as do embeddings, recurrent layers and softmax.
"""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn

from lmfusion.errors import InputError
from lmfusion.operations import Linear

_GREATEST = 127


class Int8Linear(nn.Linear):
    """A linear layer in 8-bit integers; its weight stays beside in float32, for code that reads it.

    Attributes:
        packed: weight and bias as PyTorch's operator wants them.
        is_narrow: whether inputs have 7 bits, which processors without VNNI need lest sums overflow.
    """

    packed: Any
    is_narrow: bool

    def forward(self, input: Tensor) -> Tensor:
        """Map ... x K -> ... x N, both float32."""
        if input.numel() == 0:
            return super().forward(input)
        result: Tensor = torch.ops.quantized.linear_dynamic(input, self.packed, self.is_narrow)
        return result


def quantize(model: nn.Module) -> int:
    """Let a model's linear layers compute in 8-bit integers; it can translate afterwards, but not be trained or moved.

    Args:
        model: any model in evaluation mode, in float32 on a CPU.

    Returns:
        The number of layers.

    Raises:
        InputError: if this PyTorch has no 8-bit products, or the model is not in float32 on a CPU.
    """
    if set(torch.backends.quantized.supported_engines) <= {"none"} or not hasattr(torch, "quantize_per_channel"):
        raise InputError("--int8: this PyTorch has no 8-bit products for this processor. Translate without it.")
    layers = [each for each in model.modules() if isinstance(each, nn.Linear) and type(each) in (nn.Linear, Linear)]
    for layer in layers:
        if layer.weight.device.type != "cpu" or layer.weight.dtype != torch.float32:
            raise InputError("--int8: the model is not in float32 on the CPU: call model.cpu().float() first.")
    is_narrow = not torch.cpu.get_capabilities().get("avx512_vnni", False)
    for layer in layers:
        packed = _pack(layer)
        layer.__class__ = Int8Linear
        assert isinstance(layer, Int8Linear)
        layer.packed, layer.is_narrow = packed, is_narrow
    return len(layers)


def _pack(layer: nn.Linear) -> Any:
    weight = layer.weight.detach().contiguous()
    smallest = torch.finfo(torch.float32).tiny  # rows of zeros
    scales = (weight.abs().amax(1) / _GREATEST).clamp_min(smallest).double()
    zeros = torch.zeros(len(scales), dtype=torch.long)
    with warnings.catch_warnings():  # pytorch#184982: a later PyTorch will do this by another function
        warnings.filterwarnings("ignore", "torch.quantize_per_tensor", UserWarning)
        rounded = torch.quantize_per_channel(weight, scales, zeros, 0, torch.qint8)
    return torch.ops.quantized.linear_prepack(rounded, None if layer.bias is None else layer.bias.detach())
