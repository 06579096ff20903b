#!/usr/bin/env python3
"""The table and figure of recipes/debian_ende/lm_quality.sh, from its folder.

PYTHONPATH=recipes python recipes/lm_quality_table.py runs/lm_quality --updates 500 1000 12000 --pairs 2500
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lowest_loss import validation_loss
from study import into_page
from study.task import TASKS, read_lines

from lmfusion.errors import InputError, exit_status
from lmfusion.report.compare import compare_systems
from lmfusion.report.page.figure import Figure, drawing, finish, plain_numbers
from lmfusion.runs.run_folder import RunFolder
from lmfusion.scoring import text_files

HEADING = "Gain against the language model's perplexity"
RESULTS = Path("recipes/debian_ende/results/lm_quality")


@dataclass(frozen=True)
class Point:
    """One language model and the translation model that reads it; the baseline has no language model."""

    name: str
    perplexity: float | None
    """Of the language model, a BPE symbol, on its validation text."""
    run: RunFolder

    @property
    def bleu(self) -> float:
        """On the test set."""
        return float(self.run.scores["test"]["bleu"])

    def hypotheses(self) -> list[str]:
        """The test set's translations."""
        return text_files.read_lines(self.run.hypotheses("test"))


def read(out: Path, updates: Sequence[int]) -> list[Point]:
    """The baseline and a point for each language model.

    Raises:
        InputError: one has not finished.
    """
    points = [Point("baseline", None, RunFolder(out / "baseline"))]
    for number in updates:
        perplexity = 2 ** validation_loss(out / f"cloze-{number}" / "cloze.en")
        points.append(Point(f"{number:,}", perplexity, RunFolder(out / f"with-{number}" / "src_elmo_shdemb")))
    for point in points:
        if not point.run.scores.get("test"):
            raise InputError(
                f"{point.run.path}: no score of the test set. Run lm_quality.sh, which resumes where it stopped."
            )
    return points


def table(points: Sequence[Point], references: Sequence[str]) -> str:
    """Markdown: one line a model, with the paired bootstrap against the baseline."""
    compared = compare_systems({point.name: point.hypotheses() for point in points}, references)
    lines = [
        "| cloze LM, updates | its perplexity | BLEU | chrF | validation perplexity | difference | p |",
        "|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for point, result in zip(points, compared):
        score = point.run.scores["test"]
        loss = point.run.step("train")["result"]["best_valid_perplexity"]
        cells = [f"{score['bleu']:.2f}", f"{score['chrf']:.2f}", f"{loss:.1f}"]
        if point.perplexity is None:
            lines.append(f"| none: baseline | | {' | '.join(cells)} | | |")
        else:
            cells += [f"{point.bleu - points[0].bleu:+.2f}", f"{result.p_value:.4f}"]
            lines.append(f"| {point.name} | {point.perplexity:.2f} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", points[0].run.scores["test"]["signature"]])


def draw(points: Sequence[Point], pairs: int) -> Figure:
    """BLEU above the baseline against the language model's perplexity, better ones to the right."""
    with drawing() as (canvas, axes):
        known = [(point.perplexity, point.bleu - points[0].bleu, point.name) for point in points if point.perplexity]
        axes.plot([x for x, _, _ in known], [y for _, y, _ in known], marker="o")
        for perplexity, gain, name in known:
            axes.annotate(f"{name} updates", (perplexity, gain), textcoords="offset points", xytext=(0, 7), ha="center")
        axes.set_xscale("log")
        axes.invert_xaxis()
        axes.margins(0.15)
        plain_numbers(axes.xaxis)
        axes.set_xlabel("perplexity of the cloze LM, falling")
        axes.set_ylabel("BLEU difference to baseline")
        caption = f"BLEU minus the baseline's, {pairs:,} sentence pairs, one seed; the LMs differ in updates only."
        return finish(canvas, "lm-quality", HEADING, caption)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Table and figure of lm_quality.sh.")
    parser.add_argument("out", type=Path, help="the folder of lm_quality.sh")
    parser.add_argument("--updates", type=int, nargs="+", required=True, help="of the language models")
    parser.add_argument("--pairs", type=int, required=True, help="sentence pairs that the translation models saw")
    parser.add_argument("--into", type=Path, metavar="PAGE", help="renew the table in this page of Markdown")
    args = parser.parse_args()
    return exit_status(lambda: _report(args))


def _report(args: argparse.Namespace) -> None:
    points = read(args.out, args.updates)
    figure = draw(points, args.pairs)
    (args.out / "lm-quality.svg").write_text(figure.svg, encoding="utf-8")
    shown = table(points, read_lines(TASKS["debian_ende"].corpus, "test.de"))
    parts = f"# {HEADING}\n\n{shown}\n\n![{figure.title}]({figure.name}.svg)\n\n{figure.caption}\n"
    (args.out / "report.md").write_text(parts, encoding="utf-8")
    print(shown)
    if args.into:
        RESULTS.mkdir(parents=True, exist_ok=True)
        into_page.fill(args.into, args.out, RESULTS, "lm_quality", f"{args.pairs}")


if __name__ == "__main__":
    sys.exit(main())
