"""Arithmetic peaks of processors, and how much of one training reaches."""

from __future__ import annotations

from dataclasses import dataclass

from lmfusion.errors import InputError


@dataclass(frozen=True)
class Machine:
    """A GPU as its maker publishes it.

    Attributes:
        half: TFLOP/s of dense matrix products in bf16, or in fp16 where it has no bf16.
        single: TFLOP/s of matrix products in float32 (not TF32, which PyTorch leaves off).
        memory: GB.
    """

    half: float
    single: float
    memory: float


# NVIDIA's data sheets; figures "with sparsity" halved.
MACHINES = {
    "V100": Machine(125, 15.7, 32),
    "A100": Machine(312, 19.5, 80),
    "L40S": Machine(362, 91.6, 48),
    "H100": Machine(989, 67, 80),
    "H200": Machine(989, 67, 141),
}
DEFAULT = "H100"
SHARE = 0.3
"""Share of the peak that training is taken to reach where nobody says better.

An assumption on the careful side of the 0.3 to 0.5 that is usual for transformers of this size in half precision; the
benchmarks of the repository print the share that was reached on the machine they ran on.
"""


def find(name: str) -> Machine:
    """Return a GPU by its name.

    Raises:
        InputError: if it is not in the table.
    """
    if name.upper() not in MACHINES:
        raise InputError(f"--gpu {name}: known are {', '.join(MACHINES)}; for another give --peak-tflops.")
    return MACHINES[name.upper()]
