"""Scores in the layout of the paper's Tables 1 and 4: rows strategies, columns bitext sizes; Table 3 for one size."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from lmfusion.report.page import published
from lmfusion.report.page.comparison import Comparison, Row
from lmfusion.report.page.significance import Significance
from lmfusion.report.page.table import Cell, Table, plus_minus, size_name
from lmfusion.report.verdict import CHANCE
from lmfusion.scoring.seeds import ENOUGH_SEEDS

HEADINGS = ["row", "pairs", "metric", "mean", "standard deviation", "seeds", "left out", "published", "scores"]


def score_tables(comparison: Comparison, significance: Significance) -> list[Table]:
    """Return a table a metric or, where there is only one size, one table with a column a metric."""
    metrics, sizes, tests = comparison.metrics, comparison.sizes, significance
    prefix, title = comparison.prefix, comparison.task.title
    if len(sizes) == 1:
        of_size = f", {size_name(sizes[0])} training pairs" if sizes[0] else ""
        return [_table(comparison, tests, f"{prefix}scores", f"{title}{of_size}", metrics, metrics)]
    names = [size_name(size) for size in sizes]
    of_sizes = f"on {title} by number of training pairs"
    return [
        _table(comparison, tests, f"{prefix}{each.lower()}", f"{each} {of_sizes}", [each], names) for each in metrics
    ]


def _table(
    comparison: Comparison,
    significance: Significance,
    name: str,
    title: str,
    metrics: Sequence[str],
    headings: Sequence[str],
) -> Table:
    columns = [(metric, size) for metric in metrics for size in comparison.sizes]
    found = pd.DataFrame([_entry(comparison, row, *column) for row in comparison.rows for column in columns])
    means = found.groupby(["metric", "pairs"], dropna=False)["mean"]
    holds = [significance.is_more_than_chance(row, size, metric) for row in comparison.rows for metric, size in columns]
    found["best"] = (found["mean"] == means.transform("max")) & pd.Series(holds)
    found["pairs"] = found["pairs"].astype("Int64")
    rows = [
        [Cell(str(row)), *(Cell(each.text, each.note, each.bad, each.best) for each in group.itertuples())]
        for row, group in found.groupby("row", sort=False)
    ]
    usual = _usual_seeds(comparison)
    notes = [f"{_seeds(usual)}, unless a cell says otherwise. {_bold(comparison, significance, metrics)}"]
    if found["published"].notna().any():
        notes.append(f"paper: {published.source()}.")
    notes += _signatures(comparison, metrics)
    return Table(name, title, ["", *headings], rows, notes, records=found[HEADINGS])


def _seeds(usual: int) -> str:
    """Say what most cells are."""
    if usual >= ENOUGH_SEEDS:
        return f"Mean ± standard deviation (n - 1) over {usual} seeds"
    return "Mean of two seeds" if usual == 2 else "One seed, so no spread is known"


def _bold(comparison: Comparison, significance: Significance, metrics: Sequence[str]) -> str:
    """Say what is bold."""
    tested = {line.result.metric for line in significance.lines}
    if not tested.intersection(metrics):
        return "Nothing is bold, as no difference was tested."
    untested = [metric for metric in metrics if metric not in tested]
    rest = f" {', '.join(untested)}: not tested." if untested else ""
    difference = f"its difference to {comparison.base}"
    return f"Bold: the best of a column, if {difference} is more than chance (p below {CHANCE}).{rest}"


def _entry(comparison: Comparison, row: Row, metric: str, size: int | None) -> dict[str, object]:
    """Return what a table and its CSV file tell of one row, metric and size."""
    cell = row.cell(size)
    values = pd.Series(comparison.values(cell, metric), dtype=float)
    paper = comparison.published(row.strategy, size, metric)
    notes = [] if paper is None else [f"paper {paper:.{2 if metric.startswith('ROUGE') else 1}f}"]
    if cell.left_out:
        seeds = f"{len(cell.used)} of {len(cell.runs)} runs, left out: " if cell.used else ""
        notes.append(seeds + "; ".join(sorted({_short(reason) for _, reason in cell.left_out})))
    elif len(values) not in (0, _usual_seeds(comparison)):
        pair = f": {values.min():.2f} and {values.max():.2f}" if len(values) == 2 else ""
        notes.append(f"{len(values)} seed{'s' if len(values) > 1 else ''}{pair}")
    figures = [row.name, size, metric, values.mean(), values.std(), len(values)]
    left_out = "; ".join(f"{run.name}: {reason}" for run, reason in cell.left_out)
    record = dict(zip(HEADINGS, [*figures, left_out, paper, " ".join(f"{value:.4f}" for value in values)]))
    spread = values.std() if len(values) >= ENOUGH_SEEDS else float("nan")
    text = plus_minus(values.mean(), spread, ".2f")
    return {**record, "text": text, "note": "; ".join(notes), "bad": bool(cell.left_out)}


def _short(reason: str) -> str:
    """Return a reason for a cell: what lost its loss is told at length elsewhere."""
    if reason.startswith("NaN"):
        return "NaN loss"
    return "a seed twice" if reason.startswith("the same seed") else reason


def _usual_seeds(comparison: Comparison) -> int:
    """Return the number of seeds most cells have, the largest of equals."""
    counts = pd.Series(
        [len(cell.used) for row in comparison.rows for cell in row.cells.values() if cell.used], dtype=int
    )
    return int(counts.mode().max()) if len(counts) else 0


def _signatures(comparison: Comparison, metrics: Sequence[str]) -> list[str]:
    """Return how the metrics of a table were computed."""
    keys = ["chrf_signature" if metric == "chrF" else "signature" for metric in metrics]
    return list(dict.fromkeys(entry[key] for key in keys for entry in comparison.entries if entry.get(key)))
