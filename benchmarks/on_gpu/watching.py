"""Which lines wait for the device, and which kernels attention is computed by."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any, Callable

import fairseq
import torch
from options import device
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import lmfusion

# Whole folders, for one above them may have their name: a clone, or what its environment lies in.
_OWNERS = [Path(file).resolve().parent for file in (lmfusion.__file__, fairseq.__file__, Path(__file__).parent)]
_WAITING = ("_local_scalar_dense", "equal", "is_nonzero", "nonzero", "masked_select", "_unique2")
_KERNELS = {
    "aten::_scaled_dot_product_flash_attention": "flash",
    "aten::_scaled_dot_product_flash_attention_for_cpu": "flash (CPU)",
    "aten::_scaled_dot_product_efficient_attention": "efficient",
    "aten::_scaled_dot_product_cudnn_attention": "cuDNN",
    "aten::_scaled_dot_product_attention_math": "math",
    "aten::_scaled_dot_product_fused_attention_overrideable": "other",
    "_Attention": "lmfusion's (CPU)",
}


def _place() -> str:
    """The innermost line of lmfusion, fairseq or the benchmarks that is being run."""
    for frame in reversed(traceback.extract_stack()):
        path = Path(frame.filename).resolve()
        owner = next((owner for owner in _OWNERS if path.is_relative_to(owner)), None)
        if owner is not None and path != Path(__file__).resolve():
            return f"{path.relative_to(owner.parent).as_posix()}:{frame.lineno}"
    return "the pass backward"


class _Noted(TorchDispatchMode):
    """Where there is no GPU: operations of which a program would have to wait for the result."""

    def __init__(self) -> None:
        super().__init__()
        self.places: Counter[str] = Counter()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = function.overloadpacket.__name__
        indices = args[1] if name.startswith("index") and len(args) > 1 and isinstance(args[1], (list, tuple)) else ()
        chooses = any(isinstance(index, Tensor) and index.dtype == torch.bool for index in indices)
        if chooses or name in _WAITING:
            self.places[_place()] += 1
        return function(*args, **(kwargs or {}))


def waits(run: Callable[[], object]) -> dict[str, int]:
    """How often each line waits in one run."""
    if device() != "cuda":
        with _Noted() as noted:
            run()
        return dict(noted.places)
    places: Counter[str] = Counter()

    def note(message: Any, *_: Any, **__: Any) -> None:
        if "synchroniz" in str(message):
            places[_place()] += 1

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        torch.cuda.set_sync_debug_mode("warn")
        try:
            run()
        finally:
            torch.cuda.set_sync_debug_mode("default")
    return dict(places)


def kernels(run: Callable[[], object]) -> dict[str, int]:
    """How often each kernel of attention is chosen in the forward pass of one run."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        run()
    found = Counter(_KERNELS[event.name] for event in profile.events() if event.name in _KERNELS)
    return dict(found)
