"""Finished runs side by side, on the terminal and in a file: translations, mixing weights, times, scores.

python -m lmfusion.report.compare baseline=RUN_A SRC-ELMO=RUN_B --source test.en --reference test.de --save report.txt
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmfusion.errors import InputError
from lmfusion.report.console import make_table, number, run_command
from lmfusion.report.page.examples import equally_spaced
from lmfusion.report.verdict import Verdict, is_more_than_chance
from lmfusion.runs import model_facts
from lmfusion.runs.live_line import clock
from lmfusion.runs.run_folder import FINISHED, RunFolder
from lmfusion.scoring import bleu
from lmfusion.scoring.bleu_metric import tokenizer_of
from lmfusion.scoring.text_files import read_lines

STEP_NAMES = {"train": "training", "generate": "translating the test set"}
BAR_WIDTH = 40


def named_run(word: str) -> tuple[str, RunFolder]:
    """Read `NAME=FOLDER`."""
    name, separator, folder = word.partition("=")
    if not separator or not name or not folder:
        raise argparse.ArgumentTypeError(f"{word}: expected NAME=RUN_FOLDER")
    return name, RunFolder(Path(folder))


def compare_systems(
    systems: dict[str, Sequence[str]], references: Sequence[str], tokenizer: str | None = None
) -> list[bleu.PairedResult]:
    """Return the paired bootstrap of all systems against the first, under their own names.

    Args:
        systems: hypotheses by name, a sentence an item.
        references: raw text, a sentence an item.
        tokenizer: that BLEU was computed with; None: sacreBLEU's default.

    Raises:
        InputError: fewer than two systems, or different numbers of sentences.
    """
    first, *others = systems
    results = bleu.paired_bootstrap(
        systems[first], {name: systems[name] for name in others}, references, tokenizer=tokenizer
    )
    return [replace(result, name=name) for name, result in zip(systems, results)]


def show(console: Console, args: argparse.Namespace) -> None:
    """Print everything.

    Raises:
        InputError: a run has no scores yet, or files are missing or lie outside their run folder.
    """
    logging.getLogger("sacrebleu").setLevel(logging.WARNING)  # no news of each step of the bootstrap
    for name, run in args.runs:
        if "test" not in run.scores:
            raise InputError(f"{run.path}: {name} has no scores yet. Run lmfusion.runs.hypotheses on it first.")
    sources, references = read_lines(args.source), read_lines(args.reference)
    systems: dict[str, Sequence[str]] = {name: read_lines(run.hypotheses("test")) for name, run in args.runs}
    compared = compare_systems(systems, references, tokenizer_of(args.runs[0][1].scores["test"]["signature"]))
    print_examples(console, sources, [("reference", references), *systems.items()], args.examples)
    for _, run in args.runs:
        print_mixes(console, run)
    stages = [(name, float(seconds), "", "") for name, _, seconds in (word.rpartition("=") for word in args.stage)]
    stages += [stage for name, run in [*map(named_run, args.lm), *args.runs] for stage in stages_of(name, run)]
    rows = [[name, clock(seconds), *rest] for name, seconds, *rest in stages]
    times = make_table(["stage", "time", "tokens/s", ""], rows, (0, 3), title="Times")
    times.add_section()
    times.add_row("all", clock(sum(seconds for _, seconds, *_ in stages)))
    console.print(times)
    console.print()
    print_scores(console, dict(args.runs), compared, len(references))


def print_examples(
    console: Console, sources: Sequence[str], texts: Sequence[tuple[str, Sequence[str]]], count: int
) -> None:
    """Print ``count`` sentences, and under each what every text, given by name, has in its place."""
    places = equally_spaced(len(sources), count)
    console.print(Text(f"\n{len(places)} translations, at equal distances through the test set", style="bold"))
    for place in places:
        table = Table.grid(padding=(0, 2))
        table.add_column(style="dim", no_wrap=True)
        table.add_column(overflow="fold")
        table.add_row(f"#{place + 1} source", Text(sources[place]))
        for name, lines in texts:
            table.add_row(Text(name), Text(lines[place]))
        console.print(table)
        console.print()


def print_mixes(console: Console, run: RunFolder) -> None:
    """Print the shares of the LM's layers that a run has learned as bars."""
    for mix in model_facts.read(run).get("mixes", []):
        console.print(Text(f"Learned mix of the {mix['side']} LM's layers (gamma {mix['gamma']:.3f})", style="bold"))
        table = Table.grid(padding=(0, 2))
        largest = max(mix["shares"].values())
        for name, share in mix["shares"].items():
            table.add_row(Text(name), f"{share:.3f}", Bar(largest, 0, share, width=BAR_WIDTH, color="cyan"))
        console.print(table)
        console.print()


def stages_of(name: str, run: RunFolder) -> Iterator[tuple[str, float, str, str]]:
    """Yield name, seconds, speed and outcome of each of a run's steps."""
    for step, record in run.record.get("steps", {}).items():
        result = record.get("result") or {}
        remark = "" if record["state"] == FINISHED else record["state"]
        if result.get("best_valid_perplexity") is not None:
            perplexity = f"validation perplexity {result['best_valid_perplexity']:.2f} at the lowest loss"
            remark = f"{result['updates']:,} updates, {perplexity}"
        speed = number(result.get("tokens_per_second"), ",.0f")
        yield f"{name}: {STEP_NAMES.get(step, step)}", record["seconds"], speed, remark


def print_scores(
    console: Console, runs: dict[str, RunFolder], compared: Sequence[bleu.PairedResult], sentences: int
) -> None:
    """Print BLEU of each run with its interval, chrF, its p value against the first run, and the best one's verdict.

    The best BLEU is bold if its difference to the first run's is more than chance.
    """
    scores = {name: run.scores["test"] for name, run in runs.items()}
    best = max(compared, key=lambda each: each.bleu)
    rows: list[list[str | Text]] = []
    for each in compared:
        interval, chrf = f"{each.mean - each.ci:.2f} to {each.mean + each.ci:.2f}", scores[each.name]["chrf"]
        is_bold = each is best and is_more_than_chance(_p_values(each))
        score = Text(f"{each.bleu:.2f}", style="bold" if is_bold else "")
        rows.append([each.name, score, interval, f"{chrf:.2f}", number(each.p_value, ".4f")])
    headings = ["model", "BLEU", "95% interval", "chrF", f"p against {compared[0].name}"]
    console.print(make_table(headings, rows, title="Test set, detokenized and case-sensitive"))
    signatures = dict.fromkeys(score["signature"] for score in scores.values())
    for signature in (*signatures, f"paired bootstrap: {compared[0].signature}"):
        console.print(Text(signature, style="dim"))
    said = verdict(compared, sentences)
    console.print(Text(said.text, style="bold" if said.holds else ""))


def verdict(compared: Sequence[bleu.PairedResult], sentences: int) -> Verdict:
    """Return what the paired bootstrap says of the best of the other systems against the first."""
    first, *others = compared
    best = max(others, key=lambda each: each.bleu)
    return Verdict(
        best.name,
        first.name,
        "BLEU",
        best.bleu - first.bleu,
        _p_values(best),
        sentences,
        higher=max(best.bleu, first.bleu),
    )


def _p_values(result: bleu.PairedResult) -> list[float]:
    return [] if result.p_value is None else [result.p_value]


def main() -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m lmfusion.report.compare", description=__doc__)
    parser.add_argument("runs", nargs="+", type=named_run, metavar="NAME=RUN", help="the first is the baseline")
    parser.add_argument("--source", type=Path, required=True, help="raw source text of the test set")
    parser.add_argument("--reference", type=Path, required=True, help="raw reference text")
    parser.add_argument("--examples", type=int, default=10, help="how many (default: 10)")
    parser.add_argument("--lm", action="append", default=[], metavar="NAME=RUN", help="a language model's run")
    parser.add_argument("--stage", action="append", default=[], metavar="NAME=SECONDS", help="another stage's time")
    return run_command(parser, show)


if __name__ == "__main__":
    sys.exit(main())
