"""Every run in a line, whatever became of it; and the language models that were pretrained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.runs import Run
from lmfusion.report.page.score_tables import size_name
from lmfusion.report.page.table import Cell, Table
from lmfusion.report.table import headline, number
from lmfusion.runs.live_line import clock
from lmfusion.runs.run_folder import STARTED

COLUMNS = ("run", "row", "pairs", "seed", "state", "scores", "valid ppl", "updates", "training", "parameters")
LM_COLUMNS = ("language model", "architecture", "state", "valid ppl", "updates", "training", "tokens/s", "parameters")


def run_table(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> Table:
    """Sequence-to-sequence runs, those that failed, go on, or could not be read among them."""
    rows = [_row(run, comparisons) for run in runs if not run.is_language_model]
    notes = [
        "kept: pairs left after filtering. valid ppl: the lowest validation perplexity. Parameters in millions, "
        "+ those of a frozen language model."
    ]
    return Table("runs", "All runs", COLUMNS, rows, notes, words=(1, 4))


def lm_table(runs: Sequence[Run]) -> Table:
    """Pretraining runs."""
    rows = [
        [Cell(run.name), Cell(run.flags.get("arch") or ""), state_cell(run), *_training(run)]
        for run in runs
        if run.is_language_model
    ]
    for row, run in zip(rows, (run for run in runs if run.is_language_model)):
        row[6:6] = [Cell(number(run.result("train").get("tokens_per_second"), ",.0f"))]
    return Table("language-models", "Language models", LM_COLUMNS, rows, words=(1, 2))


def state_cell(run: Run) -> Cell:
    """What became of a run."""
    if run.broken:
        return Cell("cannot be read", run.broken, bad=True)
    if run.state:
        reason = run.reason.splitlines()[0] if run.reason else ""
        return Cell(run.state, reason or run.lost_loss or _progress(run), bad=True)
    return Cell("NaN loss", run.lost_loss, bad=True) if run.lost_loss else Cell("finished")


def _progress(run: Run) -> str:
    """How far the unfinished step has come."""
    unfinished = [step for step in run.record.get("steps", {}).values() if step["state"] == STARTED]
    begun = [step["started_at"] for step in unfinished if step.get("started_at")]
    updates = f", {run.log.updates:,} updates so far" if run.log.updates else ""
    return f"begun {begun[-1]}{updates}" if begun else ""


def _row(run: Run, comparisons: Sequence[Comparison]) -> list[Cell]:
    if run.broken:
        return [Cell(run.name), Cell(), Cell(), Cell(), state_cell(run), *[Cell()] * 5]
    return [
        Cell(run.name),
        Cell(_row_name(run, comparisons)),
        _pairs(run),
        Cell("" if run.seed is None else str(run.seed)),
        state_cell(run),
        Cell(_scores(run)),
        *_training(run),
    ]


def _row_name(run: Run, comparisons: Sequence[Comparison]) -> str:
    rows = (row for comparison in comparisons for row in comparison.rows)
    return next((row.name for row in rows if any(other.name == run.name for other in row.runs)), run.strategy)


def _pairs(run: Run) -> Cell:
    if run.pairs is None:
        return Cell()
    kept = f"{run.loaded_pairs:,} kept" if run.loaded_pairs not in (None, run.pairs) else ""
    return Cell(size_name(run.pairs), kept)


def _scores(run: Run) -> str:
    """Of every test set; of a run that goes on there is no final score."""
    if run.state:
        return ""
    several = len(run.scores) > 1
    words = []
    for data_set, entry in run.scores.items():
        figures = ", ".join(f"{metric} {value:.2f}" for metric, value in headline(entry).items())
        words.append(f"{data_set}: {figures}" if several else figures)
    return "; ".join(words)


def _training(run: Run) -> list[Cell]:
    result = run.result("train")
    step = run.step("train")
    seconds = clock(step["seconds"]) if step else ""
    return [
        Cell(number(result.get("best_valid_perplexity"), ".2f")),
        Cell(number(result.get("updates"), ",d")),
        Cell(seconds),
        Cell(_parameters(run.model)),
    ]


def _parameters(model: Mapping[str, Any]) -> str:
    if not model:
        return ""
    frozen = f" + {model['frozen'] / 1e6:.1f}" if model.get("frozen") else ""
    return f"{model['trainable'] / 1e6:.1f}{frozen}"
