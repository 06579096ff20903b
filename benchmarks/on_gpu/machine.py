"""What the device reaches at best: products of large matrices, and copies."""

from __future__ import annotations

import argparse

import torch
from options import BF16, FP32, device
from results import Table
from timing import seconds

from on_gpu.sections import Budget, Found

TYPES = {FP32: torch.float32, BF16: torch.bfloat16, "fp16": torch.float16}
TRIALS = 5


def measure(args: argparse.Namespace, budget: Budget, found: Found) -> None:
    """Floating-point operations and bytes per second."""
    size, times, elements = (256, 2, 2**20) if args.tiny else (8192, 20, 2**29)
    peaks = {}
    for name, dtype in TYPES.items():
        left, right = (torch.randn(size, size, device=device()).to(dtype) for _ in range(2))

        def products(left: torch.Tensor = left, right: torch.Tensor = right) -> None:
            for _ in range(times):
                torch.mm(left, right)

        peaks[name] = 2 * times * size**3 / min(seconds(products) for _ in range(TRIALS))
    source = torch.ones(elements, device=device(), dtype=torch.bfloat16)
    target = torch.empty_like(source)
    copied = 2 * source.nbytes / min(seconds(lambda: target.copy_(source)) for _ in range(TRIALS))
    rows = [[f"products of {size} × {size}, {name}", f"{peak / 1e12:.1f} TFLOP/s"] for name, peak in peaks.items()]
    rows.append([f"copy of {source.nbytes / 1e6:,.0f} MB, read and written", f"{copied / 1e9:,.0f} GB/s"])
    found.tables.append(Table("What the device reaches", ["", "at best"], rows))
    found.figures.update(peaks=peaks, copy_bytes_per_second=copied)
