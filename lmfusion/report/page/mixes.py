"""The mixing weights that a model with a frozen language model has learned: which of its layers it listens to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lmfusion.report.page.colours import sequence, styles
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, legend_label
from lmfusion.report.page.table import Table, cells, plus_minus, size_name

GAMMA = "γ"


@dataclass(frozen=True)
class Mix:
    """One side's mix of one row at one bitext size."""

    row: str
    label: str
    strategy: str
    weights: pd.DataFrame
    """A line a seed; γ and the share of each layer in columns."""

    @property
    def shares(self) -> pd.Series:
        """Return the mean share over the seeds by layer."""
        return self.weights.drop(columns=GAMMA).mean()


def mixes_by_side(comparison: Comparison) -> dict[str, list[Mix]]:
    """Return the mixes of each side ("source", "target") that has any, a mix a row, size and list of layers."""
    found: dict[str, list[Mix]] = defaultdict(list)
    for row in comparison.rows:
        for size in comparison.sizes:
            by_layers: dict[tuple[str, tuple[str, ...]], list[dict[str, float]]] = defaultdict(list)
            for run in row.cell(size).used:
                for mix in run.model.get("mixes", ()):
                    by_layers[mix["side"], tuple(mix["shares"])].append({GAMMA: mix["gamma"], **mix["shares"]})
            for (side, _), seeds in by_layers.items():
                label = f"{row.name}, {size_name(size)}" if len(comparison.sizes) > 1 else row.name
                found[side].append(Mix(row.name, label, row.strategy, pd.DataFrame(seeds)))
    return dict(found)


def mix_table(side: str, mixes: Sequence[Mix], prefix: str) -> Table:
    """Return a table of γ and the shares, a row a layer; the names of its files begin with ``prefix``."""
    texts = pd.DataFrame(
        {n: mix.weights.apply(lambda w: plus_minus(w.mean(), w.std(), ".3f")) for n, mix in enumerate(mixes)}
    )
    rows = [cells(*row) for row in texts.reindex([GAMMA, *_layers(mixes)]).fillna("").itertuples()]
    notes = ["softmax(λ) by layer state, and the factor γ on the mix; mean ± standard deviation over seeds."]
    title = f"Mixing weights of the {side} language model's layers"
    return Table(f"{prefix}mix-{side}", title, ["layer", *(mix.label for mix in mixes)], rows, notes)


def mix_figures(side: str, mixes: Sequence[Mix], prefix: str) -> list[Figure]:
    """Return the shares over the layers: all rows in one figure or, with several bitext sizes, a figure a row."""
    rows = list(dict.fromkeys(mix.row for mix in mixes))
    if len(rows) == len(mixes):
        style = styles(mix.strategy for mix in mixes)
        lines = [(mix, *style[mix.strategy]) for mix in mixes]
        return [_draw(lines, f"{prefix}mix-{side}", f"Mixing weights, {side} side")]
    figures = []
    for number, row in enumerate(rows, start=1):
        lines = list(zip([mix for mix in mixes if mix.row == row], *zip(*sequence())))
        figures.append(_draw(lines, f"{prefix}mix-{side}-{number}", f"Mixing weights, {side} side, {row}"))
    return figures


def _draw(lines: Sequence[tuple[Mix, str, str]], name: str, title: str) -> Figure:
    """Draw lines with their colours and marks."""
    layers = _layers([mix for mix, _, _ in lines])
    with drawing(len(lines)) as (canvas, axes):
        for mix, colour, mark in lines:
            shares = mix.shares
            places = [layers.index(layer) for layer in shares.index]
            axes.plot(places, shares.to_list(), color=colour, marker=mark, label=legend_label(mix.label))
        axes.set_xticks(range(len(layers)))
        axes.set_xticklabels([layer.replace("layer ", "") for layer in layers], rotation=45 if len(layers) > 9 else 0)
        axes.set_ylim(0, 1.1 * max(mix.shares.max() for mix, _, _ in lines))
        axes.set_xlabel("layer state")
        axes.set_ylabel("share")
        legend_below(canvas, axes)
        caption = "softmax(λ) by layer state of the language model, from its embedding to its last; mean over seeds."
        return finish(canvas, name, title, caption)


def _layers(mixes: Sequence[Mix]) -> list[str]:
    """Return every layer state that any has, in the order of the longest list."""
    lists = sorted((list(mix.shares.index) for mix in mixes), key=len, reverse=True)
    return list(dict.fromkeys(layer for layers in lists for layer in layers))
