"""Count what a computation costs: floating-point operations, and bytes that its backward pass waits for.

Operations are counted by PyTorch from the shapes of the matrix products.

Attention counts its two products (four in the backward pass) over the whole square, with whatever kernel it is
computed, so that two ways to compute the same thing count the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Callable

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

_KERNELS = ("flash_attention", "flash_attention_for_cpu", "efficient_attention", "cudnn_attention")


def _square(query: Sequence[int], key: Sequence[int], value: Sequence[int]) -> int:
    """Count QKᵀ and its product with V; shapes end in T x D and begin alike."""
    return 2 * prod(query[:-1]) * key[-2] * (query[-1] + value[-1])


def _forward(query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    return _square(query, key, value)


def _backward(_out: Any, query: Sequence[int], key: Sequence[int], value: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * _square(query, key, value)


def _accumulated(_sum: Any, left: Sequence[int], right: Sequence[int], *_: Any, **__: Any) -> int:
    """Count ``sum += left @ right``, in place: PyTorch counts products that are new tensors only."""
    return 2 * prod(left) * (right[-1] if len(right) == len(left) else 1)


def _product_with_vector(left: Sequence[int], *_: Any, **__: Any) -> int:
    return 2 * prod(left)


def _linear(x: Sequence[int], weight: Sequence[int], *_: Any, **__: Any) -> int:
    """Count x times the transposed weight."""
    return 2 * prod(x) * weight[0]


def _formulas() -> dict[Any, Callable[..., int]]:
    """Return formulas for what PyTorch does not count, or counts otherwise for every kernel."""
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
    """Count what ``run`` computes, a multiply-add being two operations.

    Optimizers and what is no matrix product are not counted.
    """
    with FlopCounterMode(display=False, custom_mapping=_formulas()) as counter:
        run()
    return int(counter.get_total_flops())


@dataclass(frozen=True)
class Saved:
    """Bytes of the tensors that autograd keeps for the backward pass, each storage once.

    Attributes:
        floats: of floating-point tensors.
        others: of masks and indices.
        logits: of tensors as wide as the vocabulary, which ``floats`` does not count.
    """

    floats: int
    others: int
    logits: int

    def __sub__(self, other: Saved) -> Saved:
        return Saved(self.floats - other.floats, self.others - other.others, self.logits - other.logits)


def saved(forward: Callable[[], object], weights: Iterable[Tensor], vocabulary: int) -> Saved:
    """Measure what autograd keeps of a forward pass.

    Args:
        forward: the pass; what it returns must keep its graph.
        weights: of the model, which are not counted.
        vocabulary: V; a tensor with V channels is one of logits.
    """
    own = {weight.untyped_storage().data_ptr() for weight in weights}
    found: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        place = tensor.untyped_storage().data_ptr()
        if place not in own:
            found.setdefault(place, tensor)  # held, so that no other tensor gets its place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        graph = forward()
    total = {"floats": 0, "others": 0, "logits": 0}
    for tensor in found.values():
        wide = tensor.dim() > 1 and tensor.shape[-1] == vocabulary
        kind = "logits" if wide else "floats" if tensor.is_floating_point() else "others"
        total[kind] += tensor.untyped_storage().nbytes()
    del graph
    return Saved(**total)


class Uninitialized(TorchFunctionMode):
    """Leave the weights of models built in it as their memory was: to count operations nobody needs random numbers.

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
        """Call the function, unless it fills a tensor at random."""
        kwargs = kwargs or {}
        if func in self._SKIPPED:
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)
