"""What a section of the GPU's benchmark is given and gives back."""

from __future__ import annotations

import argparse
import gc
import time
from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from counting import Uninitialized
from options import device
from results import Table
from rows import Row
from torch import nn

AROUND = 25.0
"""Seconds for starting the process and for the last tables."""


class Budget:
    """The time that is left; what would not fit is not begun.

    Args:
        minutes: for everything, the start of the process included.
    """

    def __init__(self, minutes: float) -> None:
        self.deadline = time.monotonic() + max(0.0, 60 * minutes - AROUND)

    def left(self) -> float:
        """Seconds."""
        return self.deadline - time.monotonic()

    def has(self, seconds: float) -> bool:
        """Whether so much is left."""
        return self.left() >= seconds


@dataclass
class Found:
    """Tables for a page, and all figures."""

    tables: list[Table] = field(default_factory=list)
    figures: dict[str, Any] = field(default_factory=dict)


Section = Callable[[argparse.Namespace, Budget, Found], None]
"""Measures, and puts what it has into what is found as it comes: it may be ended at any time."""


@dataclass(frozen=True)
class Quick(Row):
    """A row whose weights are drawn on the device: filling a big model on a CPU takes longer than a measurement."""

    of: Row | None = None

    def build(self, sizes: Any, **flags: Any) -> Any:
        """As the row's, with other random weights."""
        of = self.of
        assert of is not None
        return drawn(lambda: of.build(sizes, **flags))


def quick(row: Row) -> Row:
    """The same row, built on the device."""
    return Quick(row.name, row.src, row.tgt, row.flags, row)


def drawn(build: Callable[[], Any]) -> Any:
    """Build a model without initialization, move it to the device, and draw its matrices there."""
    with Uninitialized():
        model = build()
    model.to(device())
    torch.manual_seed(1)
    for name, parameter in model.named_parameters():
        if parameter.dim() > 1:
            nn.init.normal_(parameter.detach(), std=parameter.size(-1) ** -0.5)
        elif name.rpartition(".")[2].startswith("bias"):
            nn.init.zeros_(parameter.detach())
    return model


def free() -> None:
    """Give back what nobody holds any more."""
    gc.collect()
    if device() == "cuda":
        torch.cuda.empty_cache()


class Memory:
    """Peak of the device's memory above what was taken at the start; on a CPU it is not told."""

    def __init__(self) -> None:
        free()
        self.before = 0
        if device() == "cuda":
            torch.cuda.reset_peak_memory_stats()
            self.before = torch.cuda.memory_allocated()

    def peak(self) -> int | None:
        """Bytes since the start."""
        return torch.cuda.max_memory_allocated() - self.before if device() == "cuda" else None
