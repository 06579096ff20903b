"""Is a difference to the baseline more than chance? Paired bootstrap (Koehn 2004), seed by seed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run
from lmfusion.report.page.score_tables import size_name
from lmfusion.report.page.table import Cell, Table
from lmfusion.report.page.texts import Texts, hypotheses
from lmfusion.scoring import bleu, rouge, rouge_significance

COLUMNS = ("", "pairs", "seed", "metric", "score", "95% interval", "difference", "p")


@dataclass(frozen=True)
class _Result:
    """A system's score in one metric beside its baseline's."""

    name: str
    metric: str
    score: float
    mean: float
    ci: float
    p_value: float | None
    signature: str


def significance_table(comparison: Comparison, texts: Texts | None, notices: Notices) -> Table | None:
    """Every run that has a baseline run of the same size and seed beside it; None where there is none.

    BLEU or, where there is none, ROUGE-1, -2 and -L.
    """
    baseline = comparison.baseline
    if baseline is None:
        return None
    if texts is None or not texts.raw_reference:
        notices.warn(
            f"{comparison.task.title}: the reference text is not at hand, so nothing is said of significance. Give it "
            "with --reference."
        )
        return None
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the bootstrap
    rows: list[list[Cell]] = []
    signature = ""
    for size in comparison.sizes:
        for base in baseline.cell(size).used:
            results = _test(comparison, base, _rivals(comparison, size, base), texts.references)
            signature = results[0].signature if results else signature
            ours = {result.metric: result for result in results if result.p_value is None}
            rows += [_row(result, size, base, ours[result.metric]) for result in results]
    if not rows:
        return None
    prefix = f"{comparison.slug}-" if comparison.slug else ""
    notes = [f"Paired bootstrap against the baseline of the same size and seed: {signature}"]
    return Table(f"{prefix}significance", f"Significance, {comparison.task.title}", COLUMNS, rows, notes, words=(3,))


def _rivals(comparison: Comparison, size: int | None, base: Run) -> dict[str, Run]:
    """The run of each other row with the baseline run's seed; of a row that learns nothing, its only one."""
    found = {}
    for row in comparison.rows:
        if row is not comparison.baseline:
            for run in row.cell(size).used:
                if run.seed == base.seed or not run.has_training:
                    found[row.name] = run
    return found


def _test(comparison: Comparison, base: Run, rivals: dict[str, Run], references: Sequence[str]) -> list[_Result]:
    data_set = comparison.task.data_set
    ours = hypotheses(base, data_set, len(references))
    theirs = {f" {name}": hypotheses(run, data_set, len(references)) for name, run in rivals.items()}
    whole = {name: lines for name, lines in theirs.items() if lines is not None}
    if not ours or not whole:
        return []
    if "BLEU" in comparison.metrics:
        tested = bleu.paired_bootstrap(ours, whole, references)
        return [_Result(r.name, "BLEU", r.bleu, r.mean, r.ci, r.p_value, r.signature) for r in tested]
    marker = rouge.marker_of(str(base.scores[data_set]["signature"]))
    return [
        _Result(r.name, rouge.HEADINGS[r.metric], r.f1, r.mean, r.ci, r.p_value, r.signature)
        for r in rouge_significance.paired_bootstrap(ours, whole, references, marker)
    ]


def _row(result: _Result, size: int | None, base: Run, baseline: _Result) -> list[Cell]:
    is_baseline = result.p_value is None
    return [
        Cell(result.name.strip()),
        Cell(size_name(size)),
        Cell("" if base.seed is None else str(base.seed)),
        Cell(result.metric),
        Cell(f"{result.score:.2f}"),
        Cell(f"{result.mean - result.ci:.2f} to {result.mean + result.ci:.2f}"),
        Cell("" if is_baseline else f"{result.score - baseline.score:+.2f}"),
        Cell("" if result.p_value is None else f"{result.p_value:.4f}"),
    ]
