"""Runs of one test set as the paper's tables show them: rows are strategies, columns bitext sizes, cells seeds."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from lmfusion.report.page import published
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.row_names import name_rows
from lmfusion.report.page.runs import Run
from lmfusion.report.page.strategy import BASELINES, LSTM, LSTMS, order
from lmfusion.report.page.tasks import Task, TaskGroup, runs_by_task, with_averages
from lmfusion.runs.hypotheses import headline


@dataclass
class Cell:
    """The runs of one row and one bitext size, which differ by their seed."""

    used: list[Run] = field(default_factory=list)
    """Those whose figures count."""
    left_out: list[tuple[Run, str]] = field(default_factory=list)
    """Those whose figures do not, and why."""

    @property
    def runs(self) -> list[Run]:
        """Return all of them."""
        return [*self.used, *(run for run, _ in self.left_out)]


@dataclass(frozen=True)
class Row:
    """A strategy."""

    name: str
    strategy: str
    cells: Mapping[int | None, Cell]
    """By bitext size; None for a baseline that learns nothing, or where the size is unknown."""

    def cell(self, size: int | None) -> Cell:
        """Return the runs of a bitext size; what learns nothing has the same at every size."""
        unsized = self.cells.get(None)
        learns = unsized is not None and any(run.has_training for run in unsized.runs)
        return self.cells.get(size) or (None if learns else unsized) or Cell()

    @property
    def runs(self) -> list[Run]:
        """Return the runs of all sizes."""
        return [run for cell in self.cells.values() for run in cell.runs]


@dataclass(frozen=True)
class Comparison:
    """One test set's rows and bitext sizes, or those of the average of several."""

    task: Task
    data_sets: tuple[str, ...]
    """The test set, or those whose average it is."""
    rows: list[Row]
    sizes: list[int | None]
    slug: str
    """A name for files; empty if there is only one comparison."""

    @property
    def prefix(self) -> str:
        """Return what the names of its files begin with."""
        return f"{self.slug}-" if self.slug else ""

    @property
    def entries(self) -> list[Mapping[str, Any]]:
        """Return the runs' entries of scores.json for its test sets."""
        return [run.scores[name] for run in self.runs for name in self.data_sets if name in run.scores]

    @property
    def baseline(self) -> Row | None:
        """Return the row that differences are to: the first baseline, where there is none the first plain LSTM."""
        bases = (row for strategy in (*BASELINES, *LSTMS) for row in self.rows if row.strategy == strategy)
        return next(bases, None)

    @property
    def base(self) -> str:
        """Return in words what differences are to."""
        return "the baseline" if self.baseline is None or self.baseline.strategy in BASELINES else self.baseline.name

    def of_lstms(self) -> Comparison | None:
        """Return the LSTMs beside the plain one; None where that is all there is to compare with, or not there."""
        rows = [row for row in self.rows if row.strategy.split("+")[0] == LSTM]
        strategies = {row.strategy for row in rows}
        if len(strategies) < 2 or strategies.isdisjoint(LSTMS) or self.baseline in rows:
            return None
        return replace(self, rows=rows, slug=f"{self.prefix}lstm")

    @property
    def runs(self) -> list[Run]:
        """Return all runs in the order of the rows."""
        return [run for row in self.rows for run in row.runs]

    @property
    def metrics(self) -> list[str]:
        """Return what was computed: BLEU and chrF, or ROUGE-1, -2 and -L."""
        return list(dict.fromkeys(name for run in self.runs for name in self.figures(run)))

    @property
    def main_metrics(self) -> list[str]:
        """Return the metrics that the paper reports."""
        return [metric for metric in self.metrics if metric != "chrF"]

    def figures(self, run: Run) -> dict[str, float]:
        """Return a run's scores by metric, 0..100, the average of the test sets; empty if it lacks any."""
        if run.state or any(name not in run.scores for name in self.data_sets):
            return {}
        each = [headline(run.scores[name]) for name in self.data_sets]
        return {metric: statistics.fmean(figures[metric] for figures in each) for metric in each[0]}

    def values(self, cell: Cell, metric: str) -> list[float]:
        """Return the scores of a cell's seeds, 0..100."""
        return [self.figures(run)[metric] for run in cell.used]

    @property
    def is_of_the_paper(self) -> bool:
        """Tell whether its test sets are the paper's, so that published figures may stand beside these."""
        counts: dict[str, int | None] = {}
        for name in self.data_sets:
            entries = [run.scores[name] for run in self.runs if name in run.scores]
            found = {entry.get("sentences", entry.get("summaries")) for entry in entries}
            counts[name] = found.pop() if len(found) == 1 else None
        return published.covers(counts, self.task.language_pair)

    def published(self, strategy: str, size: int | None, metric: str) -> float | None:
        """Return what the paper has for a strategy, 0..100; None on other data than the paper's."""
        if not self.is_of_the_paper:
            return None
        return published.score(self.data_sets, self.task.language_pair, strategy, size, metric)

    def difference(self, row: Row, size: int | None, metric: str) -> tuple[float, float] | None:
        """Return the mean of a row's seeds minus the baseline's over the same seeds, and the row's deviation.

        Over all seeds of each where they have none in common. The deviation is 0 for a single seed.

        Returns:
            None if either has no score at this size, or there is no baseline.
        """
        if self.baseline is None:
            return None
        both = _of_common_seeds(row.cell(size), self.baseline.cell(size))
        values, theirs = (self.values(cell, metric) for cell in both)
        if not values or not theirs:
            return None
        deviation = statistics.stdev(values) if len(values) > 1 else 0.0
        return statistics.fmean(values) - statistics.fmean(theirs), deviation

    @property
    def focus(self) -> int | None:
        """Return the size whose single runs are shown: that with the most rows, the smallest of these."""
        return max(self.sizes, key=lambda size: sum(bool(row.cell(size).used) for row in self.rows), default=None)


def _of_common_seeds(own: Cell, base: Cell) -> list[Cell]:
    """Return the runs whose seeds both have, so that a seed that is only here or there moves no difference."""
    common = {run.seed for run in own.used if run.has_training} & {run.seed for run in base.used}
    return [Cell([run for run in cell.used if run.seed in common or not common]) for cell in (own, base)]


def compare(runs: Sequence[Run], notices: Notices) -> list[Comparison]:
    """Return all comparisons that there are between sequence-to-sequence runs; notice what counts in none."""
    usable = [run for run in runs if not run.broken and not run.is_language_model]
    for run in usable:
        if run.hides_its_flags and not run.found.row:
            notices.note(f"{run.name}: its flags are in a configuration file. Name its row: ROW={run.found.path}")
    tasks = with_averages(runs_by_task(usable, notices))
    slugs = _slugs([group.task for group in tasks])
    return [_comparison(group, slug, notices) for group, slug in zip(tasks, slugs)]


def _comparison(group: TaskGroup, slug: str, notices: Notices) -> Comparison:
    names = name_rows(group.runs, notices)
    cells: dict[str, dict[int | None, Cell]] = {}
    for run in sorted(group.runs, key=lambda run: (run.seed is None, run.seed or 0)):
        cell = cells.setdefault(names[run.name], {}).setdefault(run.pairs, Cell())
        if reason := _why_left_out(run, cell, group.data_sets):
            cell.left_out.append((run, reason))
        else:
            cell.used.append(run)
    # A row is named by its strategy and, in brackets, what tells it from others of the strategy.
    rows = [Row(name, name.partition(" (")[0], by_size) for name, by_size in cells.items()]
    rows.sort(key=lambda row: (order(row.strategy), row.name))
    sizes = sorted({run.pairs for run in group.runs if run.has_training}, key=lambda size: (size is None, size or 0))
    _notice(group.task.title, rows, notices)
    return Comparison(group.task, group.data_sets, rows, sizes or [None], slug)


def _notice(title: str, rows: Sequence[Row], notices: Notices) -> None:
    """Say which runs count in no mean and why, those of one row with one reason together, and which is the baseline."""
    for row in rows:
        names: dict[str, list[str]] = {}
        for cell in row.cells.values():
            for run, reason in cell.left_out:
                names.setdefault(reason, []).append(run.name)
        for reason, runs in names.items():
            notices.warn(f"{row.name}: {', '.join(runs)} left out of every mean: {reason}.")
    baselines = [row.name for row in rows if row.strategy in BASELINES]
    if not baselines:
        to_lstm = any(row.strategy in LSTMS for row in rows)
        said = f"so differences and ratios are to {LSTM}" if to_lstm else "so no differences and ratios to it"
        notices.note(f"{title}: no baseline among the runs, {said}.")
    if len(baselines) > 1:
        said = f"{len(baselines)} rows are baselines; differences and ratios are to the first, {baselines[0]}."
        notices.note(f"{title}: {said}")


def _why_left_out(run: Run, cell: Cell, data_sets: Sequence[str]) -> str:
    """Say why a run's figures do not count; nothing if they do."""
    if run.state:
        return run.state
    if missing := [name for name in data_sets if name not in run.scores]:
        return f"not scored on {', '.join(missing)}"
    if run.lost_loss:
        return run.lost_loss
    twin = next((other for other in cell.used if run.seed is not None and other.seed == run.seed), None)
    return f"the same seed ({run.seed}) and flags as {twin.name}" if twin else ""


def _slugs(tasks: Sequence[Task]) -> list[str]:
    """Return a name for files for each task, all different; empty if there is only one."""
    if len(tasks) < 2:
        return [""] * len(tasks)
    slugs: list[str] = []
    for task in tasks:
        slug = re.sub(r"[^\w.-]+", "-", "-".join(filter(None, (task.data_set, *task.language_pair))))
        same = sum(other == slug or other.startswith(f"{slug}.") for other in slugs)
        slugs.append(f"{slug}.{same + 1}" if same else slug)
    return slugs
