"""Floating-point operations of a computation, counted by PyTorch from the shapes of the matrix products it makes.

Attention counts its two products (four in the backward pass) over the whole square, with whatever kernel it is
computed, so that two ways to compute the same thing count the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

_KERNELS = ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")


def _square(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    """Of QKᵀ and its product with V; shapes end in T x D and begin alike."""
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _forward(query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    return _square(query, key, value)


def _backward(_out: Any, query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * _square(query, key, value)


def _accumulated(_sum: Any, left: Sequence[int], right: Sequence[int], *_: Any, **__: Any) -> int:
    """Of ``sum += left @ right``, in place: PyTorch counts products that are new tensors only."""
    return 2 * prod(left) * (right[-1] if len(right) == len(left) else 1)


def _product_with_vector(left: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * prod(left)


def _linear(x: Sequence[int], weight: Sequence[int], *_: Any, **__: Any) -> int:
    """Of x times the transposed weight."""
    return 2 * prod(x) * weight[0]


def _formulas() -> dict[Any, Callable[..., int]]:
    """What PyTorch does not count, or counts otherwise for every kernel."""
    aten = torch.ops.aten
    found: dict[Any, Callable[..., int]] = {aten.mv: _product_with_vector, aten.dot: _product_with_vector}
    found.update(dict.fromkeys((aten.addmm_, aten.baddbmm_, aten.addmv, aten.addmv_), _accumulated))
    onednn = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
    if onednn is not None:  # not every build has it
        found[onednn] = _linear
    for name in _KERNELS:
        for suffix, formula in (("", _forward), ("_backward", _backward)):
            operator = getattr(torch.ops.aten, f"_scaled_dot_product_{name}{suffix}", None)
            if operator is not None:  # kernels come and go with PyTorch's versions
                found[operator] = formula
    return found


def operations(run: Callable[[], object]) -> int:
    """Of what ``run`` computes, a multiply-add being two; optimizers and what is no matrix product are not counted."""
    with FlopCounterMode(display=False, custom_mapping=_formulas()) as counter:
        run()
    return int(counter.get_total_flops())


class Uninitialized(TorchFunctionMode):
    """Models built in it keep whatever memory they were given: to count operations nobody needs random numbers.

    The memory of a large model that is never written is never really taken.
    """

    _SKIPPED = (
        torch.Tensor.normal_,
        torch.Tensor.uniform_,
        torch.nn.init.normal_,
        torch.nn.init.uniform_,
        torch.nn.init.xavier_uniform_,
        torch.nn.init.kaiming_uniform_,
    )

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """As the function, but for those that fill a tensor at random."""
        kwargs = kwargs or {}
        if func in self._SKIPPED:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
