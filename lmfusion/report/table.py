"""Run folders as the rows of one table: scores, perplexity, time and speed; what is not finished is shown as such.

    python -m lmfusion.report.table runs/debian_ende/baseline runs/debian_ende/src_elmo --save table.txt
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmfusion.errors import UserError, describe_os_error
from lmfusion.runs.live_line import clock
from lmfusion.runs.run_folder import FINISHED, RunFolder
from lmfusion.scoring import rouge

FILE_WIDTH = 120


@dataclass(frozen=True)
class Row:
    """A run folder in one line."""

    name: str
    state: str
    """Empty if the run finished and has scores."""
    scores: dict[str, float]
    """By heading, 0..100."""
    signature: str
    training: Mapping[str, Any]
    generation: Mapping[str, Any]
    """The steps' records in run.json; empty where there is no such step."""


def read_row(run: RunFolder, data_set: str = "test") -> Row:
    """What a run folder says of itself, in whatever state it is."""
    score = run.scores.get(data_set, {})
    return Row(
        name=run.path.name,
        state=state_of(run, bool(score)),
        scores=headline(score),
        signature=score.get("signature", ""),
        training=run.step("train"),
        generation=run.step("generate"),
    )


def state_of(run: RunFolder, scored: bool) -> str:
    """Why a run has no final score yet; empty if it has."""
    steps = run.record.get("steps", {})
    if not steps:
        return "not begun"
    for name, step in steps.items():
        if step["state"] != FINISHED:
            return f"{name} {step['state']}"
    return "" if scored else "not scored"


def headline(score: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a scores.json entry that a table shows, 0..100: BLEU and chrF, or F1 of ROUGE."""
    if "bleu" in score:
        return {"BLEU": score["bleu"], "chrF": score["chrf"]}
    return {rouge.HEADINGS[name]: 100 * score[name]["f1"]["mean"] for name in rouge.METRICS if name in score}


def make_table(rows: Sequence[Row]) -> Table:
    """The rows in their order, under the headings of all scores that any of them has.

    Raises:
        UserError: scores of different signatures, which cannot stand in one column.
    """
    signatures = {row.signature: row.name for row in rows if row.signature}
    if len(signatures) > 1:
        said = "; ".join(f"{name}: {signature}" for signature, name in signatures.items())
        raise UserError(f"The runs were scored in different ways ({said}). Score them again in the same way.")
    headings = list(dict.fromkeys(heading for row in rows for heading in row.scores))
    table = Table(caption=next(iter(signatures), None), caption_justify="left")
    table.add_column("row")
    for heading in [*headings, "valid ppl", "updates", "training", "tokens/s", "generating", "tokens/s"]:
        table.add_column(heading, justify="right")
    if any(row.state for row in rows):
        table.add_column("")
    for row in rows:
        # A score of an earlier, finished generation says nothing of a run that goes on.
        scores = [f"{row.scores[name]:.2f}" if name in row.scores and not row.state else "" for name in headings]
        words = [row.name, *scores, *costs(row), row.state]
        table.add_row(*map(Text, words[: len(table.columns)]))
    return table


def costs(row: Row) -> list[str]:
    """Perplexity, updates, time and speed of training; time and speed of generation. Empty where unknown."""
    train, generate = row.training.get("result") or {}, row.generation.get("result") or {}
    return [
        number(train.get("best_valid_perplexity"), ".2f"),
        number(train.get("updates"), ",d"),
        clock(row.training["seconds"]) if row.training else "",
        number(train.get("tokens_per_second"), ",.0f"),
        clock(row.generation["seconds"]) if row.generation and row.training else "",
        number(generate.get("tokens_per_second"), ",.0f"),
    ]


def number(value: float | None, form: str) -> str:
    """A number in this form, or nothing."""
    return "" if value is None else format(value, form)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.report.table", description=__doc__)
    parser.add_argument("runs", type=Path, nargs="+", help="run folders, in the order of the rows")
    parser.add_argument("--save", type=Path, help="write the same as text to this file")
    args = parser.parse_args()
    console = Console(record=True, width=None if sys.stdout.isatty() else FILE_WIDTH)
    try:
        console.print(make_table([read_row(RunFolder(path)) for path in args.runs]))
        if args.save:
            console.save_text(str(args.save))
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
