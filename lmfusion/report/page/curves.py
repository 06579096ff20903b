"""Learning curves: loss, perplexity and, where it was computed while training, BLEU against updates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from lmfusion.report.page.colours import styles
from lmfusion.report.page.figure import Figure, drawing, finish, legend_below, legend_label, plain_numbers
from lmfusion.report.page.runs import Run
from lmfusion.runs.train_log import Progress

MARKS = 8  # about as many on each curve
_DASHES = ("-", (0, (4, 2)), (0, (1, 1.5)), (0, (6, 2, 1, 2)), (0, (8, 2)), (0, (3, 1, 1, 1, 1, 1)))


@dataclass(frozen=True)
class Curve:
    """A run to be drawn, under a label."""

    run: Run
    label: str
    strategy: str


@dataclass(frozen=True)
class _Kind:
    name: str
    title: str
    value: Callable[[Progress], float | None]
    axis: str
    logarithmic: bool
    with_training: bool
    caption: str


_KINDS = (
    _Kind(
        *("loss", "Loss", lambda progress: progress.loss, "loss (bits per token)", False, True),
        "Validation: thick, with marks. Training, averaged over each logging interval: thin.",
    ),
    _Kind(
        *("perplexity", "Validation perplexity", lambda progress: progress.perplexity, "perplexity", True, False),
        "On a logarithmic scale.",
    ),
    _Kind(
        *("bleu", "Validation BLEU", lambda progress: progress.bleu, "BLEU", False, False),
        "As fairseq computes it while training (--eval-bleu); not to be compared with the test set's.",
    ),
)


def curve_figures(curves: Sequence[Curve], prefix: str, subject: str) -> list[Figure]:
    """Return a figure for each kind that any run's log has; a curve breaks where its value is no number."""
    return [_draw(kind, curves, prefix, subject) for kind in _KINDS if any(_points(c, kind) for c in curves)]


def _points(curve: Curve, kind: _Kind) -> list[tuple[int, float]]:
    """Return the validations' values by update, those that are no number included."""
    progress = [curve.run.log.validation[update] for update in sorted(curve.run.log.validation)]
    return [(each.updates, value) for each in progress if (value := kind.value(each)) is not None]


def _draw(kind: _Kind, curves: Sequence[Curve], prefix: str, subject: str) -> Figure:
    style = styles(curve.strategy for curve in curves)
    drawn: dict[str, int] = {}
    lost = []
    with drawing(len(curves)) as (canvas, axes):
        for curve in curves:
            colour, mark = style[curve.strategy]
            number = drawn.setdefault(curve.strategy, -1) + 1
            drawn[curve.strategy] = number
            dashes = _DASHES[number % len(_DASHES)]
            if kind.with_training:
                training = curve.run.log.training
                updates = sorted(training)
                axes.plot(updates, [training[u].loss for u in updates], color=colour, linewidth=0.7, alpha=0.6)
            points = _points(curve, kind)
            updates, values = [update for update, _ in points], [value for _, value in points]
            (line,) = axes.plot(updates, values, color=colour, linestyle=dashes, label=legend_label(curve.label))
            line.set(marker=mark, markersize=4, markevery=max(1, len(points) // MARKS))
            if curve.run.lost_loss:
                lost.append(curve.label)
        _axes(axes, kind)
        legend_below(canvas, axes)
        caption = kind.caption + (f" Broken where the loss is no number: {', '.join(lost)}." if lost else "")
        return finish(canvas, f"{prefix}-{kind.name}", f"{kind.title}, {subject}", caption)


def _axes(axes: Axes, kind: _Kind) -> None:
    axes.set_xlabel("updates")
    axes.set_ylabel(kind.axis)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if kind.logarithmic:
        axes.set_yscale("log")
        plain_numbers(axes.yaxis)
