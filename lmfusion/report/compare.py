"""Finished runs side by side, on the terminal and in a file.

python -m lmfusion.report.compare baseline=RUN_A SRC-ELMO=RUN_B --source test.en --reference test.de --save report.txt
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from lmfusion.errors import UserError, describe_os_error
from lmfusion.inspection import Mix, inspect_checkpoint
from lmfusion.report import side_by_side
from lmfusion.report.side_by_side import StageTime
from lmfusion.runs import checkpoints
from lmfusion.runs.run_folder import FINISHED, RunFolder
from lmfusion.scoring import bleu
from lmfusion.scoring.text_files import read_lines

STEP_NAMES = {"train": "training", "generate": "translating the test set"}
FILE_WIDTH = 110


def named_run(word: str) -> tuple[str, RunFolder]:
    """Read `NAME=FOLDER`."""
    name, separator, folder = word.partition("=")
    if not separator or not name or not folder:
        raise argparse.ArgumentTypeError(f"{word}: expected NAME=RUN_FOLDER")
    return name, RunFolder(Path(folder))


def stage_times(runs: Sequence[tuple[str, RunFolder]], others: Sequence[str]) -> list[StageTime]:
    """Times of the runs' steps, after those of other stages given as `NAME=SECONDS`."""
    stages = []
    for word in others:
        name, _, seconds = word.rpartition("=")
        stages.append(StageTime(name, float(seconds)))
    for name, run in runs:
        for step, record in run.record.get("steps", {}).items():
            result = record.get("result") or {}
            remark = "" if record["state"] == FINISHED else record["state"]
            if result.get("best_valid_perplexity") is not None:
                remark = f"{result['updates']:,} updates, validation perplexity {result['best_valid_perplexity']:.2f}"
            title = f"{name}: {STEP_NAMES.get(step, step)}"
            stages.append(StageTime(title, record["seconds"], result.get("tokens_per_second"), remark))
    return stages


def compare_systems(systems: dict[str, Sequence[str]], references: Sequence[str]) -> list[bleu.PairedResult]:
    """Paired bootstrap of all systems against the first, under their own names.

    Raises:
        UserError: fewer than two systems, or different numbers of sentences.
    """
    first, *others = systems
    results = bleu.paired_bootstrap(systems[first], {name: systems[name] for name in others}, references)
    return [replace(result, name=name) for name, result in zip(systems, results)]


def mixes_of(run: RunFolder) -> list[Mix]:
    """The mixes a run's best checkpoint has learned.

    Raises:
        UserError: there is no such checkpoint.
    """
    return inspect_checkpoint(run.checkpoints / checkpoints.BEST).mixes


def compare(console: Console, args: argparse.Namespace) -> None:
    """Print everything.

    Raises:
        UserError: a run has no scores yet, or files are missing.
    """
    sources, references = read_lines(args.source), read_lines(args.reference)
    systems: dict[str, Sequence[str]] = {name: read_lines(run.path / "test.hyp") for name, run in args.runs}
    scores = {name: run.scores["test"] for name, run in args.runs}
    comparisons = compare_systems(systems, references)
    examples = side_by_side.pick_examples(sources, references, systems, args.examples)
    side_by_side.print_examples(console, examples)
    for _, run in args.runs:
        side_by_side.print_mixes(console, mixes_of(run))
    lm_runs = [named_run(word) for word in args.lm]
    side_by_side.print_times(console, stage_times([*lm_runs, *args.runs], args.stage))
    console.print()
    signatures = dict.fromkeys(score["signature"] for score in scores.values())
    chrf = {name: score["chrf"] for name, score in scores.items()}
    side_by_side.print_scores(
        console, comparisons, chrf, [*signatures, f"paired bootstrap: {comparisons[0].signature}"]
    )
    console.print(side_by_side.verdict(comparisons), style="bold", highlight=False)


def parse_args() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.report.compare", description=__doc__)
    parser.add_argument("runs", nargs="+", type=named_run, metavar="NAME=RUN", help="the first is the baseline")
    parser.add_argument("--source", type=Path, required=True, help="raw source text of the test set")
    parser.add_argument("--reference", type=Path, required=True, help="raw reference text")
    parser.add_argument("--examples", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--lm", action="append", default=[], metavar="NAME=RUN", help="a language model's run")
    parser.add_argument("--stage", action="append", default=[], metavar="NAME=SECONDS", help="another stage's time")
    parser.add_argument("--save", type=Path, help="write the same as text to this file")
    return parser.parse_args()


def main() -> int:
    """The command line."""
    args = parse_args()
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the bootstrap
    try:
        for name, run in args.runs:
            if "test" not in run.scores:
                raise UserError(f"{run.path}: {name} has no scores yet. Run lmfusion.runs.hypotheses on it first.")
        console = Console(record=True, width=None if sys.stdout.isatty() else FILE_WIDTH)
        compare(console, args)
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
