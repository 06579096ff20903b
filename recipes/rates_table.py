#!/usr/bin/env python3
"""The table of recipes/debian_synopsis/whole.sh: rows that were trained at several learning rates, from its folder.

PYTHONPATH=recipes python recipes/rates_table.py runs/debian_synopsis_whole --add-results --into RESULTS.md
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from lowest_loss import validation_loss
from study import into_page
from study.results import small
from study.task import LEAD, TASKS

from lmfusion.errors import InputError, exit_status
from lmfusion.runs.run_folder import RUN_FILE, RunFolder
from lmfusion.scoring import rouge_significance, text_files
from lmfusion.scoring.buckets import words
from lmfusion.scoring.rouge_significance import PairedRouge

TASK = TASKS["debian_synopsis"]
HEADING = "Whole descriptions"
RESULTS = TASK.recipe / "results/whole"
PREFIX = "rate-"
BASELINE = "baseline"
NOTE = (
    "ROUGE F1, and differences in ROUGE-1 to lead, the description's first sentence, and to the baseline, with 95% "
    "intervals (paired bootstrap over sentences; one seed, so none of them knows its spread). Loss: the lowest on "
    "validation, in bits a symbol with label smoothing, by learning rate; the rate in bold was chosen by it and "
    "alone is scored. Copied: the share of a system's words that stand in the description, of the references' "
    "{copied:.0%}."
)


@dataclass(frozen=True)
class Row:
    """A row at each of its learning rates, and the one that is scored."""

    losses: Mapping[str, float]
    """Lowest validation loss by learning rate; none of a row that trains nothing."""
    rate: str
    run: RunFolder

    def hypotheses(self) -> list[str]:
        """Return the test set's synopses."""
        return text_files.read_lines(self.run.hypotheses("test"))


def read(folder: Path) -> dict[str, Row]:
    """Return the rows of a folder that are scored, by name.

    Raises:
        InputError: there is none beside lead, or it is scored at two rates.
    """
    runs = {each: RunFolder(each) for each in sorted(folder.glob(f"{PREFIX}*/*")) if (each / RUN_FILE).is_file()}
    rows: dict[str, Row] = {}
    for path, run in runs.items():
        if not run.scores.get("test"):
            continue
        if path.name in rows:
            raise InputError(f"{path}: {path.name} is scored at another rate as well. Move one of the two away.")
        tried = [each for each in runs if each.name == path.name and runs[each].step("train")]
        losses = {_rate(each): validation_loss(each) for each in sorted(tried, key=lambda each: float(_rate(each)))}
        rows[path.name] = Row(losses, _rate(path), run)
    if LEAD not in rows or len(rows) < 2:
        raise InputError(f"{folder}: holds no scored row beside {LEAD}. Run whole.sh, which resumes where it stopped.")
    return rows


def _rate(run: Path) -> str:
    return run.parent.name.removeprefix(PREFIX)


def table(rows: Mapping[str, Row], sources: Sequence[str], references: Sequence[str]) -> str:
    """Return Markdown: a line for each row, by ROUGE-1."""
    texts = {name: row.hypotheses() for name, row in rows.items()}
    others = {name: _compared(texts, name, references) for name in (LEAD, BASELINE) if name in texts}
    found = others[LEAD]
    rates = sorted({rate for row in rows.values() for rate in row.losses}, key=float)
    heads = ["row", "ROUGE-1", "-2", "-L", *(f"to {name}" for name in others), "copied"]
    heads += [f"loss at {rate}" for rate in rates]
    lines = [f"| {' | '.join(heads)} |", f"|---|{'---:|' * (len(heads) - 1)}"]
    for name in sorted(texts, key=lambda name: -found[name][0].f1):
        cells = [name, *(f"{each.f1:.2f}" for each in found[name])]
        cells += [_difference(each[name][0], each[other][0]) for other, each in others.items()]
        cells += [f"{_copied(texts[name], sources):.0%}", *(_loss(rows[name], rate) for rate in rates)]
        lines.append(f"| {' | '.join(cells)} |")
    note = NOTE.format(copied=_copied(references, sources))
    return "\n\n".join(["\n".join(lines), note, found[LEAD][0].signature])


def _compared(
    texts: Mapping[str, Sequence[str]], first: str, references: Sequence[str]
) -> dict[str, list[PairedRouge]]:
    """Return ROUGE-1, -2 and -L of each row, with its bootstrap against one of them."""
    others = {f"row {name}": lines for name, lines in texts.items() if name != first}
    results = rouge_significance.paired_bootstrap(texts[first], others, references, sentence_marker=None)
    names = [first, *(name for name in texts if name != first)]
    return {name: results[3 * place : 3 * place + 3] for place, name in enumerate(names)}


def _difference(row: PairedRouge, other: PairedRouge) -> str:
    if row.difference_interval is None:
        return ""
    low, high = row.difference_interval
    return f"{row.f1 - other.f1:+.2f} ({low:+.2f} to {high:+.2f})"


def _loss(row: Row, rate: str) -> str:
    if rate not in row.losses:
        return ""
    return f"**{row.losses[rate]:.3f}**" if rate == row.rate else f"{row.losses[rate]:.3f}"


def _copied(texts: Iterable[str], sources: Iterable[str]) -> float:
    """Return the share of the texts' words with a letter that their sources have, whatever the case of letters."""
    pairs = [(set(words(source.lower())), words(text.lower())) for text, source in zip(texts, sources)]
    return fmean(word in known for known, line in pairs for word in line if any(map(str.isalpha, word)))


def keep(folder: Path, results: Path) -> int:
    """Copy what is small of scored rows, and of their trainings at other rates, into committed results.

    Returns:
        The number of runs that were copied; those that are there already stay as they are.

    Raises:
        InputError: as ``read``.
    """
    rows, count = read(folder), 0
    for path in sorted(each for each in folder.glob(f"{PREFIX}*/*") if each.name in rows):
        kept = results / path.relative_to(folder)
        if kept.is_dir():
            continue
        kept.mkdir(parents=True)
        for name, text in small(RunFolder(path), folder).items():
            (kept / name).write_text(text, encoding="utf-8")
        count += 1
    return count


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="The table of debian_synopsis/whole.sh.")
    parser.add_argument("out", type=Path, help="the folder of whole.sh")
    parser.add_argument(
        "--add-results", action="store_true", help=f"copy what is scored to {RESULTS}, and show all there"
    )
    parser.add_argument("--into", type=Path, metavar="PAGE", help="renew the table in this page of Markdown")
    args = parser.parse_args()
    return exit_status(lambda: _report(args))


def _report(args: argparse.Namespace) -> None:
    if args.add_results:
        print(f"{keep(args.out, RESULTS)} runs copied into {RESULTS}")
    rows = read(RESULTS if args.add_results else args.out)
    shown = table(rows, TASK.lines("test", TASK.sides[0]), TASK.lines("test", TASK.sides[1]))
    (args.out / "report.md").write_text(f"# {HEADING}\n\n{shown}\n", encoding="utf-8")
    print(shown)
    if args.into:
        into_page.fill(args.into, args.out, RESULTS, TASK.name, RESULTS.name)


if __name__ == "__main__":
    sys.exit(main())
