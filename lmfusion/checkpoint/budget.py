"""Refuse a configuration whose model would take far more memory than the file it comes from, before it is taken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from lmfusion.errors import InputError

SPARE = 2 << 30
"""Bytes beyond the weights, for what no file holds: tables of positions, masks."""
TIMES = 8
"""Times a file's size that its weights may take: from half precision to float32 is 2, initialisation makes copies."""

LEAST = 16 << 10
"""Bytes that a tensor counts at least, so that the modules around small ones are bounded, too."""


class _Budget(TorchDispatchMode):
    """A torch mode that counts the bytes of new tensors before they are made, and stops at a limit.

    Args:
        limit: bytes.
        refusal: message of the error beyond it.
    """

    def __init__(self, limit: int, refusal: str) -> None:
        super().__init__()
        self.left, self.refusal = limit, refusal

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.left -= _bytes_made(func, args, kwargs or {})
        if self.left < 0:
            raise InputError(self.refusal)
        return func(*args, **(kwargs or {}))


def _bytes_made(func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> int:
    """Return the bytes that an operation allocates from sizes alone, or by expanding tensors; else 0."""
    if any(argument.name == "device" for argument in func._schema.arguments):  # empty, zeros, arange …
        sizes = {name: value for name, value in kwargs.items() if name != "pin_memory"}
        if "generator" in sizes:  # some variants need one, and none is of that device
            sizes["generator"] = None
        made = func(*args, **{**sizes, "device": torch.device("meta")})
        return max(int(made.numel() * made.element_size()), LEAST)
    tensors = [argument for argument in args if isinstance(argument, Tensor)]
    if func is torch.ops.aten.repeat.default:
        return int(tensors[0].numel() * prod(args[1]) * tensors[0].element_size())
    if func is torch.ops.aten.mul.Tensor and len(tensors) == 2:  # positions x frequencies
        shape = torch.broadcast_shapes(*(tensor.shape for tensor in tensors))
        return prod(shape) * max(tensor.element_size() for tensor in tensors)
    return 0


@contextmanager
def building_from(paths: Sequence[str | Path]) -> Iterator[None]:
    """Bound the memory of models that are built in this context by the size of the files that describe them.

    Args:
        paths: of checkpoints; with a frozen language model in a file beside one, that counts, too, as do the parts of
            one that fairseq keeps in shards.

    Raises:
        InputError: in the context, before a tensor is made that exceeds the bound.
    """
    whole = {path for path in map(Path, paths) if path.is_file()}
    files = whole | {part for path in {*map(Path, paths)} - whole for part in path.parent.glob(f"{path.stem}*.pt")}
    files |= {beside for file in files for beside in file.parent.glob("frozen_lm.*.pt")}
    size = sum(file.stat().st_size for file in files)
    names = ", ".join(map(str, paths))
    refusal = (
        f"{names}: the configuration asks for a model of more than {(TIMES * size + SPARE) / 1e9:.1f} GB, and the "
        f"weights there take {size / 1e9:.3f} GB: the file is damaged or not what it says. Copy or train it again."
    )
    with _Budget(TIMES * size + SPARE, refusal):
        yield
