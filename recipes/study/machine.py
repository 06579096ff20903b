"""How many runs a machine carries at a time: a core each, memory for each, on a GPU its memory as well."""

from __future__ import annotations

import os

RUN_MEMORY = 2.0e9
"""Bytes of main memory that a run of the small models takes (measured: 1.2e9 to 1.6e9)."""
RUN_GPU_MEMORY = 3.0e9
"""Bytes of a GPU's memory that it is given: the driver's own half a gigabyte, weights, activations."""


def jobs_that_fit(gpu: bool) -> int:
    """The number of runs at a time, at least one."""
    limits = [len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1]
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        limits.append(int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // RUN_MEMORY))
    if gpu:
        import torch

        free, _ = torch.cuda.mem_get_info()
        limits.append(int(free // RUN_GPU_MEMORY))
    return max(1, min(limits))


def has_gpu() -> bool:
    """Whether runs compute on a GPU, as recipes/_common.sh decides it."""
    import torch

    return bool(torch.cuda.is_available())
