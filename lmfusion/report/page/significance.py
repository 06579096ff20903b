"""Is a difference to the baseline more than chance? Paired bootstrap (Koehn 2004), seed by seed."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field

from lmfusion.errors import InputError
from lmfusion.report.page.bootstrap import BASELINE, Bootstrap, Result
from lmfusion.report.page.comparison import Comparison, Row
from lmfusion.report.page.runs import Run
from lmfusion.report.page.table import Cell, Table, cells, size_name
from lmfusion.report.page.texts import Texts, hypotheses
from lmfusion.report.verdict import CHANCE, Verdict, is_more_than_chance

COLUMNS = ("", "pairs", "seed", "metric", "score", "95% interval", "difference", "95% interval", "p")
NOT_ASKED = "Whether that is more than chance was not computed: leave out --no-significance."
OF_SEVERAL = "Whether that is more than chance is not computed for an average of test sets."
NO_REFERENCE = (
    "Whether that is more than chance was not computed, as the reference text is not at hand: give both texts of the "
    "test set with --source and --reference."
)
NO_OUTPUT = (
    "Whether that is more than chance was not computed, as the outputs of two runs of one seed are not at hand: keep "
    "the .hyp files in the run folders."
)


@dataclass(frozen=True)
class Line:
    """A run's result beside that of the baseline run of its size and seed."""

    row: str
    size: int | None
    seed: int | None
    result: Result
    difference: float
    """0 for the baseline itself."""


@dataclass(frozen=True)
class Significance:
    """All tests of a comparison."""

    lines: Sequence[Line] = field(default_factory=list)
    sentences: int = 0
    untested: str = NOT_ASKED
    """Why what is not among the lines was not tested, and what to do about it."""

    def of(self, row: Row, size: int | None, metric: str) -> list[Result]:
        """Return the tests of a row against the baseline, one a seed."""
        return [
            line.result
            for line in self.lines
            if (line.row, line.size, line.result.metric) == (row.name, size, metric) and line.result.p_value is not None
        ]

    def p_values(self, row: Row, size: int | None, metric: str) -> list[float]:
        """Return the p value of each seed's difference to the baseline."""
        return [result.p_value for result in self.of(row, size, metric) if result.p_value is not None]

    def is_more_than_chance(self, row: Row, size: int | None, metric: str) -> bool:
        """Tell whether a row differs from the baseline by more than chance, with every seed."""
        return is_more_than_chance(self.p_values(row, size, metric))

    def interval(self, row: Row, size: int | None, metric: str) -> tuple[float, float] | None:
        """Return the 95% interval of a row's difference to the baseline; of several seeds, the mean of their ends.

        That is at least as wide as the interval of the mean over the seeds.
        """
        ends = [(each.low, each.high) for each in self.of(row, size, metric)]
        lows, highs = [low for low, _ in ends if low is not None], [high for _, high in ends if high is not None]
        return (statistics.fmean(lows), statistics.fmean(highs)) if lows and highs else None


def examine(comparison: Comparison, texts: Texts | None, bootstrap: Bootstrap) -> Significance:
    """Test every run that has a baseline run of the same size and seed beside it: BLEU, or ROUGE-1, -2 and -L."""
    if len(comparison.data_sets) > 1:
        return Significance(untested=OF_SEVERAL)
    if texts is None or not texts.raw_reference:
        return Significance(untested=NO_REFERENCE)
    lines = []
    try:
        for size in comparison.sizes:
            for base in comparison.baseline.cell(size).used if comparison.baseline else ():
                lines += _test(comparison, size, base, texts.references, bootstrap)
    except InputError as error:  # scored in a way that cannot be repeated here, which is worth no less of a report
        return Significance(untested=f"Whether that is more than chance was not computed. {error}")
    return Significance(lines, len(texts.references), NO_OUTPUT)


def verdict(comparison: Comparison, size: int | None, significance: Significance) -> Verdict | None:
    """Return how the best of the others stands to the baseline at one size; None without a baseline and another."""
    if comparison.baseline is None or not comparison.main_metrics:
        return None
    metric = comparison.main_metrics[0]
    rivals = [
        (found[0], row)
        for row in comparison.rows
        if row is not comparison.baseline and any(run.has_training for run in row.runs)
        if (found := comparison.difference(row, size, metric))
    ]
    if not rivals:
        return None
    difference, best = max(rivals, key=lambda rival: rival[0])
    where = f" with {size_name(size)} pairs" if len(comparison.sizes) > 1 else ""
    p_values = significance.p_values(best, size, metric)
    scores = [comparison.values(row.cell(size), metric) for row in (best, comparison.baseline)]
    known = (significance.sentences, where, significance.untested, max(map(statistics.fmean, scores)))
    return Verdict(best.name, comparison.baseline.name, metric, difference, p_values, *known)


def significance_table(comparison: Comparison, significance: Significance) -> Table | None:
    """Return a line for every run that was tested; None without any."""
    rows: list[list[Cell]] = []
    for line in significance.lines:
        each, ends = line.result, ("", "", "")
        if each.p_value is not None and each.low is not None and each.high is not None:
            ends = (f"{line.difference:+.2f}", f"{each.low:+.2f} to {each.high:+.2f}", f"{each.p_value:.4f}")
        interval = f"{each.mean - each.ci:.2f} to {each.mean + each.ci:.2f}"
        seed = "" if line.seed is None else line.seed
        known = cells(line.row, size_name(line.size), seed, each.metric, f"{each.score:.2f}", interval)
        is_bold = each.p_value is not None and each.p_value < CHANCE
        rows.append([*known, Cell(ends[0], best=is_bold), *cells(*ends[1:])])
    if not rows:
        return None
    signature = significance.lines[0].result.signature
    notes = [
        f"Paired bootstrap against {comparison.base} of the same size and seed: {signature}",
        f"Bold: p below {CHANCE}. This p is about half of a two-sided one, and each is of its own comparison: among 20 "
        f"rows that equal {comparison.base}, about two can be expected below it.",
    ]
    name = f"{comparison.prefix}significance"
    beside = "" if comparison.base == "the baseline" else f" beside {comparison.base}"
    return Table(name, f"Significance{beside}, {comparison.task.title}", COLUMNS, rows, notes, words=(3,))


def _test(
    comparison: Comparison, size: int | None, base: Run, references: Sequence[str], bootstrap: Bootstrap
) -> list[Line]:
    """Compare each other row's run of the baseline run's seed with it; of a row that learns nothing, its only one."""
    data_set = comparison.task.data_set
    ours = hypotheses(base, data_set, len(references))
    theirs = {}
    for row in comparison.rows:
        for run in row.cell(size).used if row is not comparison.baseline else ():
            lines = hypotheses(run, data_set, len(references))
            if lines is not None and (run.seed == base.seed or not run.has_training):
                theirs[row.name] = lines
    if not ours or not theirs or comparison.baseline is None:
        return []
    found = bootstrap.test(ours, theirs, references, str(base.scores[data_set].get("signature", "")))
    scores = {result.metric: result.score for result in found[BASELINE]}
    names = {comparison.baseline.name: BASELINE, **{name: name for name in theirs}}
    return [
        Line(name, size, base.seed, result, result.score - scores[result.metric])
        for name, key in names.items()
        for result in found[key]
    ]
