"""Scores in the layout of the paper's Tables 1 and 4: rows strategies, columns bitext sizes; Table 3 for one size."""

from __future__ import annotations

from collections.abc import Sequence

from lmfusion.report.page import published
from lmfusion.report.page.comparison import Comparison, Row, mean, spread
from lmfusion.report.page.table import Cell, Table

HEADINGS = ("row", "pairs", "metric", "mean", "standard deviation", "seeds", "left out", "published", "scores")


def score_tables(comparison: Comparison) -> list[Table]:
    """A table a metric or, where there is only one size, one table with a column a metric."""
    prefix = f"{comparison.slug}-" if comparison.slug else ""
    metrics = comparison.metrics
    if len(comparison.sizes) == 1:
        size = comparison.sizes[0]
        of_size = f", {size_name(size)} sentence pairs" if size else ""
        columns = [(metric, size) for metric in metrics]
        return [_table(comparison, f"{prefix}scores", f"{comparison.task.title}{of_size}", columns, metrics)]
    return [
        _table(
            comparison,
            f"{prefix}{metric.lower()}",
            f"{metric} on {comparison.task.title} by number of sentence pairs",
            [(metric, size) for size in comparison.sizes],
            [size_name(size) for size in comparison.sizes],
        )
        for metric in metrics
    ]


def size_name(size: int | None) -> str:
    """A number of sentence pairs as the paper writes it: 160K, 2.5K."""
    if size is None:
        return "unknown size"
    if size < 1000 or size % 100:
        return f"{size:,}"
    return f"{size / 1000:g}K"


def _table(
    comparison: Comparison,
    name: str,
    title: str,
    columns: Sequence[tuple[str, int | None]],
    headings: Sequence[str],
) -> Table:
    best = {column: _best(comparison, *column) for column in columns}
    rows = [
        [Cell(row.name), *(_shown(comparison, row, column, best[column]) for column in columns)]
        for row in comparison.rows
    ]
    records = [_record(comparison, row, *column) for row in comparison.rows for column in columns]
    return Table(name, title, ["", *headings], rows, _notes(comparison, columns), records=[HEADINGS, *records])


def _best(comparison: Comparison, metric: str, size: int | None) -> float | None:
    means = [mean(comparison.values(row.cell(size), metric)) for row in comparison.rows]
    found = [value for value in means if value is not None]
    return max(found) if len(found) > 1 else None


def _shown(comparison: Comparison, row: Row, column: tuple[str, int | None], best: float | None) -> Cell:
    metric, size = column
    cell = row.cell(size)
    values = comparison.values(cell, metric)
    average, deviation = mean(values), spread(values)
    paper = published.score(comparison.data_sets, comparison.task.language_pair, row.strategy, size, metric)
    notes = [f"paper {_published_text(metric, paper)}"] if paper is not None else []
    if cell.left_out:
        seeds = f"{len(cell.used)} of {len(cell.runs)} runs, left out: " if cell.used else ""
        notes.append(seeds + "; ".join(sorted({_short(reason) for _, reason in cell.left_out})))
    elif len(values) != _usual_seeds(comparison) and row.runs and values:
        notes.append(f"{len(values)} seed{'s' if len(values) > 1 else ''}")
    text = "" if average is None else f"{average:.2f}" + ("" if deviation is None else f" ± {deviation:.2f}")
    return Cell(text, "; ".join(notes), bad=bool(cell.left_out), best=average is not None and average == best)


def _short(reason: str) -> str:
    """A reason for a cell: what lost its loss is told at length elsewhere."""
    if reason.startswith("NaN"):
        return "NaN loss"
    return "a seed twice" if reason.startswith("the same seed") else reason


def _published_text(metric: str, value: float) -> str:
    return f"{value:.2f}" if metric.startswith("ROUGE") else f"{value:.1f}"


def _usual_seeds(comparison: Comparison) -> int:
    """The number of seeds most cells have."""
    counts = [len(cell.used) for row in comparison.rows for cell in row.cells.values() if cell.used]
    return max(set(counts), key=lambda count: (counts.count(count), count), default=0)


def _notes(comparison: Comparison, columns: Sequence[tuple[str, int | None]]) -> list[str]:
    count = _usual_seeds(comparison)
    seeds = f"Mean ± standard deviation (n - 1) over {count} seeds" if count > 1 else "One seed, so no spread is known"
    notes = [f"{seeds}, unless a cell says otherwise. The best of each column is bold."]
    has_paper = any(
        published.score(comparison.data_sets, comparison.task.language_pair, row.strategy, size, metric) is not None
        for row in comparison.rows
        for metric, size in columns
    )
    if has_paper:
        notes.append(f"paper: {published.source()}.")
    return notes + _signatures(comparison, [metric for metric, _ in columns])


def _signatures(comparison: Comparison, metrics: Sequence[str]) -> list[str]:
    """How the metrics of a table were computed."""
    keys = ["chrf_signature" if metric == "chrF" else "signature" for metric in metrics]
    entries = [run.scores[name] for run in comparison.runs for name in comparison.data_sets if name in run.scores]
    return list(dict.fromkeys(str(entry[key]) for key in keys for entry in entries if entry.get(key)))


def _record(comparison: Comparison, row: Row, metric: str, size: int | None) -> list[object]:
    cell = row.cell(size)
    values = comparison.values(cell, metric)
    average, deviation = mean(values), spread(values)
    paper = published.score(comparison.data_sets, comparison.task.language_pair, row.strategy, size, metric)
    left_out = "; ".join(f"{run.name}: {reason}" for run, reason in cell.left_out)
    each = " ".join(f"{value:.4f}" for value in values)
    numbers = [_plain(average), _plain(deviation), len(values)]
    return [row.name, _plain(size), metric, *numbers, left_out, _plain(paper), each]


def _plain(value: float | None) -> object:
    return "" if value is None else round(value, 4)
