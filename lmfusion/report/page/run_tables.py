"""Every run in a line, whatever became of it; and the language models that were pretrained."""

from __future__ import annotations

from collections.abc import Sequence

from lmfusion.report.console import number
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.runs import Run
from lmfusion.report.page.table import Cell, Table, cells, size_name
from lmfusion.runs.hypotheses import headline
from lmfusion.runs.live_line import clock
from lmfusion.runs.run_folder import STARTED

COLUMNS = ("run", "row", "pairs", "seed", "state", "scores", "valid ppl", "updates", "training", "parameters")
LM_COLUMNS = ("language model", "architecture", "state", "valid ppl", "updates", "training", "tokens/s", "parameters")

_NOTE = (
    "valid ppl: validation perplexity of the checkpoint with the lowest validation loss. Parameters in millions, + "
    "those of a frozen language model."
)


def run_table(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> Table:
    """Return sequence-to-sequence runs, those that failed, go on, or could not be read among them."""
    rows = {run.name: row.name for each in reversed(comparisons) for row in reversed(each.rows) for run in row.runs}
    lines = [_line(run, rows.get(run.name)) for run in runs if not run.is_language_model]
    kept = "kept: pairs left after filtering. " if any(line[2].note for line in lines) else ""
    return Table("runs", "All runs", COLUMNS, lines, [f"{kept}{_NOTE}"], words=(1, 4))


def lm_table(runs: Sequence[Run]) -> Table:
    """Return pretraining runs."""
    rows = []
    for run in runs:
        if run.is_language_model:
            *training, parameters = _training(run)
            speed = number(run.result("train").get("tokens_per_second"), ",.0f")
            names = cells(run.name, run.flags.get("arch") or "")
            rows.append([*names, state_cell(run), *cells(*training, speed, parameters)])
    return Table("language-models", "Language models", LM_COLUMNS, rows, [_NOTE], words=(1, 2))


def state_cell(run: Run) -> Cell:
    """Return what became of a run."""
    if run.broken:
        return Cell("cannot be read", run.broken, bad=True)
    if run.state:
        reason = run.reason.splitlines()[0] if run.reason else ""
        return Cell(run.state, reason or run.lost_loss or _progress(run), bad=True)
    return Cell("NaN loss", run.lost_loss, bad=True) if run.lost_loss else Cell("finished")


def _progress(run: Run) -> str:
    """Say how far the unfinished step has come."""
    unfinished = [step for step in run.record.get("steps", {}).values() if step["state"] == STARTED]
    begun = [step["started_at"] for step in unfinished if step.get("started_at")]
    updates = f", {run.log.updates:,} updates so far" if run.log.updates else ""
    return f"begun {begun[-1]}{updates}" if begun else ""


def _line(run: Run, row: str | None) -> list[Cell]:
    if run.broken:
        return [*cells(run.name, "", "", ""), state_cell(run), *cells(*[""] * 5)]
    kept = f"{run.loaded_pairs:,} kept" if run.loaded_pairs not in (None, run.pairs) else ""
    pairs = Cell() if run.pairs is None else Cell(size_name(run.pairs), kept)
    seed = Cell("" if run.seed is None else str(run.seed))
    shown = cells(run.name, row or run.strategy)
    return [*shown, pairs, seed, state_cell(run), *cells(_scores(run), *_training(run))]


def _scores(run: Run) -> str:
    """Return the scores of every test set; of a run that goes on there is no final score."""
    words = []
    for data_set, entry in run.scores.items() if not run.state else ():
        figures = ", ".join(f"{metric} {value:.2f}" for metric, value in headline(entry).items())
        words.append(f"{data_set}: {figures}" if len(run.scores) > 1 else figures)
    return "; ".join(words)


def _training(run: Run) -> list[str]:
    """Return perplexity, updates, time and parameters; empty where unknown."""
    result, step = run.result("train"), run.step("train")
    perplexity, updates = number(result.get("best_valid_perplexity"), ".2f"), number(result.get("updates"), ",d")
    return [perplexity, updates, clock(step["seconds"]) if step else "", parameters(run)]


def parameters(run: Run) -> str:
    """Return a model's trained parameters in millions, + those of a frozen language model; empty where unknown."""
    if "trainable" not in run.model:
        return ""
    frozen = f" + {run.model['frozen'] / 1e6:.1f}" if run.model.get("frozen") else ""
    return f"{run.model['trainable'] / 1e6:.1f}{frozen}"
