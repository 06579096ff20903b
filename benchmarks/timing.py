"""Timing several things fairly: in turn, round after round, in one process."""

from __future__ import annotations

import json
import platform
import statistics
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Callable

import torch
from rich.console import Console
from rich.progress import track
from rich.table import Table


@dataclass(frozen=True)
class Seconds:
    """Of one thing over all rounds."""

    median: float
    least: float
    most: float

    @property
    def spread(self) -> float:
        """Half of the range, as a share of the median."""
        return (self.most - self.least) / 2 / self.median


def synchronize() -> None:
    """Wait for a GPU, where there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def alternate(sides: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Seconds]:
    """Run every side once a round, after a round that is not counted.

    Args:
        sides: what to run, by name.
        rounds: counted ones.
    """
    found: dict[str, list[float]] = {name: [] for name in sides}
    for number in track(range(rounds + 1), description="measuring", console=Console(stderr=True), transient=True):
        for name, run in sides.items():
            synchronize()
            start = time.perf_counter()
            run()
            synchronize()
            if number:
                found[name].append(time.perf_counter() - start)
    return {name: Seconds(statistics.median(values), min(values), max(values)) for name, values in found.items()}


def machine(threads: int) -> str:
    """What this runs on."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else f"CPU, {threads} threads"
    return f"{device}, torch {torch.__version__}, Python {platform.python_version()}"


def show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """Print a table."""
    table = Table(title=title, title_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*row)
    Console().print(table)


def save(path: Path | None, **results: Any) -> None:
    """Write results as JSON where a path is given."""
    if path is not None:
        plain = lambda value: asdict(value) if isinstance(value, Seconds) else str(value)  # noqa: E731
        path.write_text(json.dumps(results, indent=2, default=plain) + "\n", encoding="utf-8")
