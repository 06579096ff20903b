"""How the cost of training grows with sentence length, batch, vocabulary and LM depth: a figure each.

    lmfusion bench growth [--along length batch vocabulary depth] [--figures DIR] [--size S] [--json FILE]

Time per target token of the baseline and the four cells, measured in turn at every point, and its ratio to the
baseline; dashed is the arithmetic limit of the ratio. What does not vary is as --size and the other flags say.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Callable

from models import Sizes
from options import flags, parse
from results import Table, report
from rows import BASELINE, ROWS
from steps import LONGEST, Training, pairs
from timing import Spread, alternate
from training import CRITERION, DROPOUT

CELLS = [row for row in ROWS if row.name in (BASELINE, "SRC-ELMO", "SRC-FT", "TGT-ELMO", "TGT-FT")]


@dataclass(frozen=True)
class Point:
    """What is trained on: sizes, and a batch."""

    sizes: Sizes
    sentences: int
    length: int


@dataclass(frozen=True)
class Axis:
    """Something that grows.

    Attributes:
        label: of the figure's axis.
        values: where it is measured.
        point: what is trained on at a value.
    """

    label: str
    values: tuple[int, ...]
    point: Callable[[argparse.Namespace, int], Point]


def _length(args: argparse.Namespace, value: int) -> Point:
    return Point(args.sizes, max(1, args.tokens // value), value)


def _batch(args: argparse.Namespace, value: int) -> Point:
    return Point(args.sizes, value, LONGEST)


def _vocabulary(args: argparse.Namespace, value: int) -> Point:
    return Point(replace(args.sizes, vocabulary=value), max(1, args.tokens // LONGEST), LONGEST)


def _depth(args: argparse.Namespace, value: int) -> Point:
    return Point(replace(args.sizes, lm_layers=value), max(1, args.tokens // LONGEST), LONGEST)


AXES = {
    "length": Axis("tokens of a sentence", (16, 32, 64, 128, 256, 512), _length),
    "batch": Axis("sentences of a batch", (1, 4, 16, 64), _batch),
    "vocabulary": Axis("types of the vocabulary", (8_000, 16_000, 32_000, 64_000), _vocabulary),
    "depth": Axis("blocks of the LM's towers", (3, 6, 12, 24), _depth),
}


def at(point: Point, args: argparse.Namespace, what: str) -> dict[str, Any]:
    """Microseconds per target token, their ratios to the baseline and the limits of these, by row."""
    running = {}
    for row in CELLS:
        samples = [pairs(point.sentences, point.sizes, seed=0, longest=point.length, shortest=point.length)]
        running[row.name] = Training(row.build(point.sizes, dropout=DROPOUT), samples, args, CRITERION)
    operations = {name: training.operations() for name, training in running.items()}
    time = alternate({name: training.epoch for name, training in running.items()}, args.rounds, what)
    tokens = running[BASELINE].tokens
    return {
        name: {
            "microseconds": Spread([1e6 * value / tokens for value in spread.values]),
            "ratio": spread.over(time[BASELINE]),
            "limit": operations[name] / operations[BASELINE],
        }
        for name, spread in time.items()
    }


def table_of(name: str, found: dict[int, dict[str, Any]], args: argparse.Namespace) -> Table:
    """Ratios beside their limits; microseconds of the baseline."""
    label = AXES[name].label
    title = f"Training by {label}, otherwise {args.models}, {args.precision}: time / baseline (arithmetic limit)"
    table = Table(title, [label, "baseline, µs a token", *(row.name for row in CELLS[1:])])
    for value, rows in found.items():
        base = rows[BASELINE]["microseconds"]
        cells = [f"{rows[row.name]['ratio'].median:.2f}× ({rows[row.name]['limit']:.2f}×)" for row in CELLS[1:]]
        table.rows.append([f"{value:,}", f"{base.median:,.0f} ± {100 * base.half_range:.0f}%", *cells])
    return table


def main(arguments: list[str] | None = None) -> None:
    """Prints a table and draws a figure for each axis."""
    parser = flags(__doc__, rounds=3)
    parser.add_argument("--along", nargs="+", choices=AXES, default=list(AXES), help="what grows (default: all)")
    parser.add_argument("--values", type=int, nargs="+", help="measure at these, of one --along")
    parser.add_argument("--tokens", type=int, default=1024, help="target tokens of a batch, but for batch (1024)")
    parser.add_argument("--figures", type=Path, help="folder for the figures, growth_NAME.svg")
    args = parse(parser, arguments)
    if args.values and len(args.along) > 1:
        parser.error("--values belongs to one of --along: name that.")
    found = {
        name: {
            value: at(AXES[name].point(args, value), args, f"{name} {value}")
            for value in args.values or AXES[name].values
        }
        for name in args.along
    }
    if args.figures is not None:
        from figures import draw

        for name, points in found.items():
            draw(args.figures / f"growth_{name}.svg", AXES[name].label, points)
    report("growth", args, [table_of(name, points, args) for name, points in found.items()], **found)


if __name__ == "__main__":
    main()
