#!/usr/bin/env python3
"""The tables of recipes/sentences, from the logs of their trainings.

PYTHONPATH=recipes python recipes/sentences/report.py runs/sentences/runs --title regimes --rows frozen fine-tuned \\
    --seeds 1 2 3 --save runs/sentences/regimes
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, stdev

from study import into_page

from lmfusion.errors import InputError, exit_status

MEASURES = {"section": "section_accuracy", "synopsis": "synopsis_accuracy", "similarity": "similarity_r"}
AVERAGE = "average"
HEADINGS = {"regimes": "Training regimes", "probing": "Frozen language models of each family"}
RESULTS = Path("recipes/sentences/results")


@dataclass(frozen=True)
class Value:
    """A measure on a test set, at the epoch that is best on the validation sets."""

    row: str
    seed: int
    measure: str
    value: float
    epoch: int
    seconds: float


def logged(path: Path, name: str) -> Iterator[dict[str, str]]:
    """What fairseq logged of a set (``valid``, ``test``), an entry an epoch, without the set's name in the keys."""
    for line in path.read_text(encoding="utf-8").splitlines():
        _, found, entry = line.partition(f"| {name} | {{")
        if found:
            yield {key.removeprefix(f"{name}_"): value for key, value in json.loads("{" + entry).items()}


def values(folder: Path, row: str, seed: int) -> Iterator[Value]:
    """The measures of the trainings of a row and a seed.

    Raises:
        InputError: if there is none, or one has not ended.
    """
    logs = sorted((folder / row / f"seed-{seed}").glob("*/train.log"))
    if not logs:
        raise InputError(
            f"{folder / row}: no training with seed {seed}. Run the recipe, which resumes where it stopped."
        )
    for log in logs:
        if not log.with_name("done").exists():
            raise InputError(f"{log.parent}: has not ended. Run the recipe again, which resumes.")
        valid, test = ({entry["epoch"]: entry for entry in logged(log, name)} for name in ("valid", "test"))
        best = max(valid, key=lambda epoch: float(valid[epoch][AVERAGE]))
        walls = [float(entry["train_wall"]) for entry in logged(log, "train")]
        for measure in MEASURES.values():
            if measure in test[best]:
                yield Value(row, seed, measure, float(test[best][measure]), int(best), sum(walls))


def cell(found: Sequence[float]) -> str:
    """Mean and standard deviation over seeds."""
    if not found:
        return ""
    spread = f" ± {stdev(found):.3f}" if len(found) > 1 else ""
    return f"{mean(found):.3f}{spread}"


def table(found: Sequence[Value], rows: Sequence[str]) -> str:
    """Markdown: a line for each row; the average of a row that has all measures."""
    lines = [f"| | {' | '.join(MEASURES)} | {AVERAGE} |", f"|---|{'---:|' * (len(MEASURES) + 1)}"]
    for row in rows:
        by_seed: dict[int, dict[str, float]] = {}
        for each in found:
            if each.row == row:
                by_seed.setdefault(each.seed, {})[each.measure] = each.value
        cells = [cell([one[measure] for one in by_seed.values() if measure in one]) for measure in MEASURES.values()]
        whole = [mean(one.values()) for one in by_seed.values() if len(one) == len(MEASURES)]
        lines.append(f"| {row.removeprefix('probe-')} | {' | '.join(cells)} | {cell(whole)} |")
    return "\n".join(lines)


def as_tsv(found: Sequence[Value]) -> str:
    """A line for each value."""
    lines = ["row\tseed\tmeasure\tvalue\tepoch\tseconds"]
    lines += [f"{v.row}\t{v.seed}\t{v.measure}\t{v.value}\t{v.epoch}\t{v.seconds:.0f}" for v in found]
    return "".join(f"{line}\n" for line in lines)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Tables of recipes/sentences.")
    parser.add_argument("folder", type=Path, help="the folder of the trainings: ROW/seed-N/TASK/train.log")
    parser.add_argument("--title", required=True, choices=HEADINGS)
    parser.add_argument("--rows", nargs="+", required=True)
    parser.add_argument("--seeds", nargs="+", type=int, required=True)
    parser.add_argument("--save", type=Path, required=True, help="folder for report.md and figures.tsv")
    parser.add_argument("--into", type=Path, help="page whose part of this table is renewed; figures go to results/")
    args = parser.parse_args(words)
    return exit_status(lambda: _report(args))


def _report(args: argparse.Namespace) -> None:
    found = [value for row in args.rows for seed in args.seeds for value in values(args.folder, row, seed)]
    print(shown := table(found, args.rows))
    seeds = " ".join(map(str, args.seeds))
    note = f"Test sets; mean ± standard deviation over seeds {seeds}; accuracy, of similarity Pearson's r."
    args.save.mkdir(parents=True, exist_ok=True)
    (args.save / "report.md").write_text(f"# {HEADINGS[args.title]}\n\n{shown}\n\n{note}\n", encoding="utf-8")
    (args.save / "figures.tsv").write_text(as_tsv(found), encoding="utf-8")
    if args.into:
        into_page.fill(args.into, args.save, RESULTS, "sentences", args.title)
        shutil.copyfile(args.save / "figures.tsv", RESULTS / f"{args.title}.tsv")


if __name__ == "__main__":
    sys.exit(main())
