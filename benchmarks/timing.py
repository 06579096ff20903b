"""Timing several things fairly: in turn, round after round, in one process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Callable

import torch
from rich.console import Console
from rich.progress import track


@dataclass(frozen=True)
class Spread:
    """Median and range of what was measured in every round."""

    values: list[float]
    median: float = field(init=False)
    least: float = field(init=False)
    most: float = field(init=False)

    def __post_init__(self) -> None:
        for name, function in (("median", statistics.median), ("least", min), ("most", max)):
            object.__setattr__(self, name, function(self.values))

    @property
    def half_range(self) -> float:
        """As a share of the median."""
        return (self.most - self.least) / 2 / self.median

    def over(self, other: Spread) -> Spread:
        """The ratios within each round: what slows the machine down for a while slows both sides."""
        return Spread([ours / theirs for ours, theirs in zip(self.values, other.values)])

    def ratio(self) -> str:
        """For a table."""
        return f"{self.median:.2f}× ({self.least:.2f}–{self.most:.2f})"

    def rate(self, amount: float) -> str:
        """Amount per second, for a table; these are seconds."""
        return f"{amount / self.median:,.0f} ± {100 * self.half_range:.0f}%"


def synchronize() -> None:
    """Wait for a GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def seconds(run: Callable[[], object]) -> float:
    """How long it takes."""
    synchronize()
    start = time.perf_counter()
    run()
    synchronize()
    return time.perf_counter() - start


def progress(items: Iterable[int], what: str) -> Iterable[int]:
    """Walk through items with a bar and the time left on stderr."""
    return track(items, description=what, console=Console(stderr=True), transient=True)


def alternate(sides: Mapping[str, Callable[[], object]], rounds: int, what: str = "measuring") -> dict[str, Spread]:
    """Run every side once a round, after a round that is not counted.

    Args:
        sides: what to run, by name.
        rounds: counted ones.
        what: said beside the progress bar.

    Returns:
        Seconds.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in progress(range(rounds + 1), what):
        for name, run in sides.items():
            taken = seconds(run)
            if number:
                found[name].append(taken)
    return {name: Spread(values) for name, values in found.items()}
