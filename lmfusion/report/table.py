"""Run folders as the rows of one table: scores, perplexity, time and speed; what is not finished is shown as such.

python -m lmfusion.report.table runs/debian_ende/baseline runs/debian_ende/src_elmo --save table.txt
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lmfusion.errors import InputError
from lmfusion.report.console import make_table, number, run_command
from lmfusion.runs.hypotheses import headline
from lmfusion.runs.live_line import clock
from lmfusion.runs.run_folder import FINISHED, RunFolder

COSTS = ("valid ppl", "updates", "training", "tokens/s", "generating", "tokens/s")


def table_of(runs: Sequence[RunFolder], data_set: str = "test") -> Table:
    """Return the runs in their order, with a column for each score that any of them has.

    Raises:
        InputError: scores of different signatures, which cannot stand in one column, or a folder that cannot be read.
    """
    scores = [run.scores.get(data_set, {}) for run in runs]
    states = [state_of(run, bool(score)) for run, score in zip(runs, scores)]
    figures = [headline(score) for score in scores]
    signatures = {score["signature"]: run.path.name for run, score in zip(runs, scores) if score.get("signature")}
    if len(signatures) > 1:
        said = "; ".join(f"{name}: {signature}" for signature, name in signatures.items())
        raise InputError(f"The runs were scored in different ways ({said}). Score them again in the same way.")
    metrics = list(dict.fromkeys(metric for found in figures for metric in found))
    rows = []
    for run, found, state in zip(runs, figures, states):
        # A score of an earlier, finished generation says nothing of a run that goes on.
        shown = [number(None if state else found.get(metric), ".2f") for metric in metrics]
        rows.append([run.path.name, *shown, *costs(run), *([state] if any(states) else [])])
    headings = ["row", *metrics, *COSTS, *([""] if any(states) else [])]
    captions = [*signatures, "valid ppl: validation perplexity of the checkpoint with the lowest validation loss"]
    return make_table(headings, rows, (0, len(metrics) + 7), caption="\n".join(captions))


def state_of(run: RunFolder, scored: bool) -> str:
    """Return why a run has no final score yet; empty if it has."""
    steps = run.record.get("steps", {})
    unfinished = [f"{name} {step['state']}" for name, step in steps.items() if step["state"] != FINISHED]
    return "not begun" if not steps else unfinished[0] if unfinished else "" if scored else "not scored"


def costs(run: RunFolder) -> list[str]:
    """Return perplexity, updates, time and speed of training, time and speed of generation; empty where unknown."""
    training, generation = run.step("train"), run.step("generate")
    train, generate = training.get("result") or {}, generation.get("result") or {}
    return [
        number(train.get("best_valid_perplexity"), ".2f"),
        number(train.get("updates"), ",d"),
        clock(training["seconds"]) if training else "",
        number(train.get("tokens_per_second"), ",.0f"),
        clock(generation["seconds"]) if generation and training else "",
        number(generate.get("tokens_per_second"), ",.0f"),
    ]


def show(console: Console, args: argparse.Namespace) -> None:
    """Print the table; raises as ``table_of`` does."""
    console.print(table_of([RunFolder(path) for path in args.runs]))


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.report.table", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, in the order of the rows")
    return run_command(parser, show)


if __name__ == "__main__":
    sys.exit(main())
