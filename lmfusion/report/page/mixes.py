"""The mixing weights that a model with a frozen language model has learned: which of its layers it listens to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lmfusion.report.page.colours import sequence, styles
from lmfusion.report.page.comparison import Comparison, mean, spread
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, legend_label
from lmfusion.report.page.score_tables import size_name
from lmfusion.report.page.table import Cell, Table


@dataclass(frozen=True)
class Mix:
    """One side's mix of one row at one bitext size, by seed."""

    row: str
    label: str
    strategy: str
    layers: tuple[str, ...]
    shares: list[list[float]]
    gammas: list[float]

    def mean_shares(self) -> list[float]:
        """By layer, over the seeds."""
        return [sum(values) / len(values) for values in zip(*self.shares)]


def mixes_by_side(comparison: Comparison) -> dict[str, list[Mix]]:
    """The mixes of each side ("source", "target") and list of layers that has any."""
    found: dict[str, list[Mix]] = defaultdict(list)
    for row in comparison.rows:
        for size in comparison.sizes:
            by_layers: dict[tuple[str, tuple[str, ...]], list[tuple[list[float], float]]] = defaultdict(list)
            for run in row.cell(size).used:
                for mix in run.model.get("mixes", ()):
                    shares = mix["shares"]
                    by_layers[mix["side"], tuple(shares)].append((list(shares.values()), mix["gamma"]))
            for (side, layers), values in by_layers.items():
                label = f"{row.name}, {size_name(size)}" if len(comparison.sizes) > 1 else row.name
                shares_of, gammas = zip(*values)
                found[side].append(Mix(row.name, label, row.strategy, layers, list(shares_of), list(gammas)))
    return dict(found)


def mix_table(side: str, mixes: Sequence[Mix], prefix: str) -> Table:
    """gamma and the shares, a row a layer."""
    layers = _layers(mixes)
    rows = [[Cell("γ"), *(Cell(_number(mix.gammas)) for mix in mixes)]]
    for layer in layers:
        rows.append([Cell(layer), *(Cell(_share(mix, layer)) for mix in mixes)])
    notes = ["softmax(λ) by layer state, and the factor γ on the mix; mean ± standard deviation over seeds."]
    title = f"Mixing weights of the {side} language model's layers"
    return Table(f"{prefix}mix-{side}", title, ["layer", *(mix.label for mix in mixes)], rows, notes)


def _share(mix: Mix, layer: str) -> str:
    if layer not in mix.layers:
        return ""
    place = mix.layers.index(layer)
    return _number([shares[place] for shares in mix.shares])


def _number(values: Sequence[float]) -> str:
    deviation = spread(values)
    return f"{mean(values):.3f}" + ("" if deviation is None else f" ± {deviation:.3f}")


def mix_figures(side: str, mixes: Sequence[Mix], prefix: str) -> list[Figure]:
    """The shares over the layers: all rows in one figure or, with several bitext sizes, a figure a row."""
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
    """Lines with their colours and marks."""
    layers = _layers([mix for mix, _, _ in lines])
    with drawing(len(lines)) as (canvas, axes):
        for mix, colour, mark in lines:
            places = [layers.index(layer) for layer in mix.layers]
            axes.plot(places, mix.mean_shares(), color=colour, marker=mark, label=legend_label(mix.label))
        axes.set_xticks(range(len(layers)))
        axes.set_xticklabels([layer.replace("layer ", "") for layer in layers], rotation=45 if len(layers) > 9 else 0)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("layer state")
        axes.set_ylabel("share")
        legend_below(canvas, axes)
        caption = "softmax(λ) by layer state of the language model, from its embedding to its last; mean over seeds."
        return finish(canvas, name, title, caption)


def _layers(mixes: Sequence[Mix]) -> list[str]:
    """Every layer state that any has, in the order of the longest list."""
    longest = max(mixes, key=lambda mix: len(mix.layers)).layers
    return list(dict.fromkeys([*longest, *(layer for mix in mixes for layer in mix.layers)]))
