"""Figures of how costs grow, as SVG that is the same whenever the figures in it are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot
from matplotlib.ticker import NullLocator, ScalarFormatter

COLOURS = ["#555555", "#0072b2", "#56b4e9", "#d55e00", "#e69f00"]  # told apart by the colour-blind, too
MARKERS = "os^Dv"


def draw(path: Path, label: str, points: Mapping[int, Mapping[str, Mapping[str, Any]]]) -> None:
    """Time per token, and its ratio to the baseline with the arithmetic limit dashed.

    Args:
        path: of the SVG.
        label: of the horizontal axis.
        points: by value and row: ``microseconds`` and ``ratio`` with ``median``, ``least`` and ``most``, and ``limit``.
    """
    pyplot.rcParams.update({"svg.hashsalt": "lmfusion", "font.size": 9})
    figure, (times, ratios) = pyplot.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    values = list(points)
    for number, name in enumerate(points[values[0]]):
        style = {"color": COLOURS[number], "marker": MARKERS[number], "markersize": 4}
        rows = [points[value][name] for value in values]
        for axes, key in ((times, "microseconds"), (ratios, "ratio")):
            spreads = [row[key] for row in rows]
            axes.plot(values, [spread.median for spread in spreads], label=name, **style)
            low, high = [spread.least for spread in spreads], [spread.most for spread in spreads]
            axes.fill_between(values, low, high, color=COLOURS[number], alpha=0.15, linewidth=0)
        ratios.plot(values, [row["limit"] for row in rows], color=COLOURS[number], linestyle="--", linewidth=1)
    times.set(ylabel="µs per target token", yscale="log")
    ratios.set(ylabel="time / baseline (dashed: arithmetic limit)", ylim=(0, None))
    for axes in (times, ratios):
        axes.set(xlabel=label, xscale="log")
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.set_xticks(values)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.grid(alpha=0.3)
    figure.legend(*times.get_legend_handles_labels(), loc="outside lower center", ncols=len(COLOURS), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
