"""The paper's Figure 1: how much a strategy adds to the baseline, against the bitext size; one line a strategy."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.ticker import FixedLocator, NullLocator

from lmfusion.report.page import published
from lmfusion.report.page.colours import GRID, INK, styles
from lmfusion.report.page.comparison import Comparison, Row
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, legend_label
from lmfusion.report.page.significance import Significance
from lmfusion.report.page.table import size_name
from lmfusion.report.verdict import CHANCE


def difference_figures(comparison: Comparison, significance: Significance) -> list[Figure]:
    """Return a figure for each metric that the paper reports; none without a baseline and a rival at the same size."""
    figures = []
    for metric in comparison.main_metrics:
        lines = [(row, points) for row in comparison.rows if (points := differences(comparison, row, metric))]
        if not any(row is not comparison.baseline for row, _ in lines):
            continue
        name = f"{comparison.prefix}difference" + ("" if metric == "BLEU" else f"-{metric.lower()}")
        if len(comparison.sizes) > 1:
            figures.append(_draw_lines(comparison, metric, lines, name))
        else:
            figures.append(_draw_bars(comparison, metric, lines, name, significance))
    return figures


Point = tuple[int, float, float]
"""Bitext size, difference of means, standard deviation of the row's seeds (0 if there is one)."""


def differences(comparison: Comparison, row: Row, metric: str) -> list[Point]:
    """Return what a row adds to the baseline at each size that has both."""
    found = {size: comparison.difference(row, size, metric) for size in comparison.sizes if size is not None}
    return [(size, *difference) for size, difference in found.items() if difference]


def _draw_lines(comparison: Comparison, metric: str, lines: Sequence[tuple[Row, list[Point]]], name: str) -> Figure:
    style = styles(row.strategy for row in comparison.rows)
    known = _published_lines(comparison, metric, lines)
    with drawing(len(lines) + len(known)) as (canvas, axes):
        for number, (row, points) in enumerate(lines):
            colour, mark = style[row.strategy]
            sizes, values, deviations = zip(*points)
            dashes = "-" if row.name == row.strategy else (0, (4, 1 + number % 4))
            axes.plot(sizes, values, color=colour, marker=mark, linestyle=dashes, label=legend_label(row.name))
            if row is not comparison.baseline and any(deviations):
                axes.errorbar(sizes, values, yerr=deviations, fmt="none", ecolor=colour, elinewidth=1, capsize=3)
        for name_known, sizes_known, values_known in known:
            label, colour = f"{name_known}, published", style[name_known][0]
            axes.plot(sizes_known, values_known, color=colour, linestyle=":", label=label)
        _axes(axes, sorted({size for _, points in lines for size, _, _ in points}), metric)
        legend_below(canvas, axes)
        caption = f"{metric} minus that of {comparison.base}, means over the seeds of both, "
        caption += "against the number of training pairs (logarithmic)"
        caption += "; bars: standard deviation of the strategy's seeds" if _any_spread(lines) else ""
        caption += "; dotted: the paper." if known else "."
        return finish(canvas, name, f"{metric} difference to {comparison.base}, {comparison.task.title}", caption)


def _draw_bars(
    comparison: Comparison,
    metric: str,
    lines: Sequence[tuple[Row, list[Point]]],
    name: str,
    significance: Significance,
) -> Figure:
    """Draw a bar a strategy: at a single size a line would be a point."""
    style = styles(row.strategy for row in comparison.rows)
    size = comparison.sizes[0]
    rivals = [(row, points[0]) for row, points in lines if row is not comparison.baseline]
    with drawing(height=0.8 + 0.4 * len(rivals)) as (canvas, axes):
        for place, (row, (_, value, deviation)) in enumerate(rivals):
            colour, holds = style[row.strategy][0], significance.is_more_than_chance(row, size, metric)
            height, fill = (0.6, colour) if holds else (0.25, "none")
            axes.barh(place, value, height=height, facecolor=fill, edgecolor=colour)
            low, high = significance.interval(row, size, metric) or (value - deviation, value + deviation)
            if low < high:
                ends = [[max(value - low, 0)], [max(high - value, 0)]]
                axes.errorbar(value, place, xerr=ends, fmt="none", ecolor=INK, elinewidth=1.4, capsize=3)
        axes.axvline(0, color=INK, linewidth=1)
        axes.set_yticks(range(len(rivals)))
        axes.set_yticklabels([row.name for row, _ in rivals])
        axes.set_ylim(len(rivals) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"{metric} difference to {comparison.base}")
        caption = f"{metric} minus that of {comparison.base}, means over the seeds of both, "
        caption += f"{size_name(size)} training pairs. "
        caption += f"Thick bars: more than chance (p below {CHANCE}); thin, hollow ones: no more, or not tested."
        if any(significance.interval(row, size, metric) for row, _ in rivals):
            caption += " Lines: 95% interval of the paired bootstrap."
        elif _any_spread(lines):
            caption += " Lines: standard deviation of the strategy's seeds."
        return finish(canvas, name, f"{metric} difference to {comparison.base}, {comparison.task.title}", caption)


def _any_spread(lines: Sequence[tuple[Row, list[Point]]]) -> bool:
    return any(deviation for _, points in lines for _, _, deviation in points)


def _axes(axes: Axes, sizes: Sequence[int], metric: str) -> None:
    axes.axhline(0, color=GRID, linewidth=1.2, zorder=0)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator(list(sizes)))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticklabels([size_name(size) for size in sizes])
    axes.set_xlabel("training pairs")
    axes.set_ylabel(f"{metric} difference to baseline")


def _published_lines(
    comparison: Comparison, metric: str, lines: Sequence[tuple[Row, list[Point]]]
) -> list[tuple[str, list[int], list[float]]]:
    """Return published differences at our sizes of our strategies, where the test set is one of the paper's."""
    found = []
    sizes = [size for size in comparison.sizes if size is not None]
    for strategy in dict.fromkeys(row.strategy for row, _ in lines if row is not comparison.baseline):
        values = {}
        for size in sizes:
            ours = comparison.published(strategy, size, metric)
            baseline = comparison.published("baseline", size, metric)
            if ours is not None and baseline is not None:
                values[size] = ours - baseline
        if values:
            found.append((strategy, list(values), list(values.values())))
    return found


def published_figure() -> Figure:
    """Return Figure 1 as it was published, to be looked at beside ours."""
    strategies = [name for name in published.strategies() if name != "baseline"]
    style = styles(strategies)
    with drawing(len(strategies)) as (canvas, axes):
        for strategy in strategies:
            colour, mark = style[strategy]
            sizes, values = zip(*published.differences(strategy))
            axes.plot(sizes, values, color=colour, marker=mark, label=strategy)
        _axes(axes, [size for size, _ in published.differences(strategies[0])], "BLEU")
        legend_below(canvas, axes)
        caption = f"WMT'18 English-German, average of newstest2012 to newstest2017. {published.source()}."
        return finish(canvas, "published-difference", "The paper's Figure 1", caption)
