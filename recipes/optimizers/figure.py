#!/usr/bin/env python3
"""The table and figure of recipes/optimizers/study.sh, from its folder.

PYTHONPATH=recipes python recipes/optimizers/figure.py runs/optimizers --optimizers adam rmsprop
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import InputError, exit_status
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, plain_numbers
from lmfusion.runs.train_log import TrainLog, read_file

TITLE = "One fused model under different optimizers"


@dataclass(frozen=True)
class Run:
    """One training."""

    rate: str
    log: TrainLog

    @property
    def loss(self) -> float:
        """The lowest validation loss in bits, label smoothing included; infinite without one that is a number."""
        best = self.log.best_validation
        return float("inf") if best is None else best.loss


def runs_of(out: Path, optimizer: str) -> list[Run]:
    """All trainings of an optimizer, from the lowest learning rate to the highest.

    Raises:
        InputError: there is none.
    """
    found = [Run(path.name.split("-", 1)[1], read_file(path / "train.log")) for path in out.glob(f"{optimizer}-*")]
    if not found:
        raise InputError(f"{out} has no training of {optimizer}. Run study.sh, which resumes where it stopped.")
    return sorted(found, key=lambda run: float(run.rate))


def table(runs: dict[str, list[Run]]) -> str:
    """Markdown: a line for each optimizer, the best first."""
    head = "| optimizer | learning rate | validation perplexity | at update | rates tried |"
    lines = [head, "|---|---:|---:|---:|---|"]
    for name, tried in sorted(runs.items(), key=lambda item: min(run.loss for run in item[1])):
        best = min(tried, key=lambda run: run.loss)
        progress = best.log.best_validation
        figures = f"{progress.perplexity:.2f} | {progress.updates:,}" if progress else "no loss was a number | "
        lines.append(f"| {name} | {best.rate} | {figures} | {', '.join(run.rate for run in tried)} |")
    return "\n".join(lines)


def draw(runs: dict[str, list[Run]]) -> Figure:
    """Validation perplexity of each optimizer's best learning rate over the updates."""
    with drawing(len(runs)) as (canvas, axes):
        for number, (name, tried) in enumerate(runs.items()):
            validation = min(tried, key=lambda run: run.loss).log.validation
            style = "-" if number % 2 == 0 else "--"
            axes.plot(list(validation), [each.perplexity for each in validation.values()], style, label=name)
        axes.set_yscale("log")
        axes.set_xlabel("updates")
        axes.set_ylabel("validation perplexity")
        plain_numbers(axes.yaxis)
        legend_below(canvas, axes)
        caption = "Each optimizer at the learning rate of those tried with the lowest validation loss; one seed."
        return finish(canvas, "optimizers", TITLE, caption)


def _report(out: Path, optimizers: Sequence[str]) -> None:
    """Write the table and the figure, and print the table."""
    runs = {name: runs_of(out, name) for name in optimizers}
    figure, shown = draw(runs), table(runs)
    (out / "optimizers.svg").write_text(figure.svg, encoding="utf-8")
    report = f"# {TITLE}\n\n{shown}\n\n![{figure.title}](optimizers.svg)\n\n{figure.caption}\n"
    (out / "report.md").write_text(report, encoding="utf-8")
    print(shown)


def main(words: Sequence[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description="Table and figure of recipes/optimizers/study.sh.")
    parser.add_argument("out", type=Path, help="the folder of study.sh")
    parser.add_argument("--optimizers", nargs="+", required=True, help="names in front of the folders' names")
    args = parser.parse_args(words)
    return exit_status(lambda: _report(args.out, args.optimizers))


if __name__ == "__main__":
    sys.exit(main())
