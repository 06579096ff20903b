"""Is a difference to the baseline more than chance? Paired bootstrap (Koehn 2004), seed by seed."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.runs import Run
from lmfusion.report.page.score_tables import size_name
from lmfusion.report.page.table import Cell, Table, cells
from lmfusion.report.page.texts import Texts, hypotheses
from lmfusion.scoring import bleu, rouge, rouge_significance

COLUMNS = ("", "pairs", "seed", "metric", "score", "95% interval", "difference", "p")


@dataclass(frozen=True)
class _Result:
    """A system's score in one metric, 0..100; its p value is None for the baseline."""

    name: str
    metric: str
    score: float
    mean: float
    ci: float
    p_value: float | None
    signature: str


def significance_table(comparison: Comparison, texts: Texts | None, notices: Notices) -> Table | None:
    """Return a line for every run that has a baseline run of the same size and seed beside it; None without any.

    BLEU or, where there is none, ROUGE-1, -2 and -L.
    """
    if comparison.baseline is None:
        return None
    title = comparison.task.title
    if texts is None or not texts.raw_reference:
        missing = "the reference text is not at hand, so nothing is said of significance"
        notices.warn(f"{title}: {missing}. Give it with --reference.")
        return None
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the bootstrap
    rows: list[list[Cell]] = []
    signature = ""
    for size in comparison.sizes:
        for base in comparison.baseline.cell(size).used:
            results = _test(comparison, size, base, texts.references)
            signature = results[0].signature if results else signature
            ours = {result.metric: result.score for result in results if result.p_value is None}
            seed = "" if base.seed is None else base.seed
            for each in results:
                difference, p_value = f"{each.score - ours[each.metric]:+.2f}", each.p_value
                last = ("", "") if p_value is None else (difference, f"{p_value:.4f}")
                interval = f"{each.mean - each.ci:.2f} to {each.mean + each.ci:.2f}"
                known = each.name.strip(), size_name(size), seed, each.metric, f"{each.score:.2f}", interval
                rows.append(cells(*known, *last))
    notes = [f"Paired bootstrap against the baseline of the same size and seed: {signature}"]
    name = f"{comparison.prefix}significance"
    return Table(name, f"Significance, {title}", COLUMNS, rows, notes, words=(3,)) if rows else None


def _test(comparison: Comparison, size: int | None, base: Run, references: Sequence[str]) -> list[_Result]:
    """Compare each other row's run of the baseline run's seed with it; of a row that learns nothing, its only one."""
    data_set = comparison.task.data_set
    ours = hypotheses(base, data_set, len(references))
    theirs = {}
    for row in comparison.rows:
        for run in row.cell(size).used if row is not comparison.baseline else ():
            lines = hypotheses(run, data_set, len(references))
            if lines is not None and (run.seed == base.seed or not run.has_training):
                theirs[f" {row.name}"] = lines  # the space: a row may be called as the bootstrap calls its baseline
    if not ours or not theirs:
        return []
    if "BLEU" in comparison.metrics:
        tested = bleu.paired_bootstrap(ours, theirs, references)
        return [_Result(r.name, "BLEU", r.bleu, r.mean, r.ci, r.p_value, r.signature) for r in tested]
    marker = rouge.marker_of(str(base.scores[data_set]["signature"]))
    return [
        _Result(r.name, rouge.HEADINGS[r.metric], r.f1, r.mean, r.ci, r.p_value, r.signature)
        for r in rouge_significance.paired_bootstrap(ours, theirs, references, marker)
    ]
