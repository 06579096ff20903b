"""A drawing as SVG and PNG files, and as SVG inside a page that may be light or dark."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure as Drawing
from matplotlib.ticker import FuncFormatter, NullFormatter

from lmfusion.report.page.colours import DARK, GRID, INK

_STYLE: Any = {  # matplotlib's types list every key that there is
    "svg.fonttype": "none",  # text stays text: readable by machines, in the page's own font
    "text.parse_math": False,  # names of runs are no formulas
    "svg.hashsalt": "lmfusion",  # the same figure is the same file
    "font.family": "sans-serif",
    "font.size": 10,
    "text.color": INK,
    "axes.facecolor": "none",
    "axes.labelcolor": INK,
    "axes.edgecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "legend.labelcolor": INK,
    "lines.linewidth": 1.6,
    "lines.markersize": 5,
}
WIDTH, HEIGHT = 5.4, 3.4  # inches: letters stay legible on a phone
LEGEND_LINE = 0.2
DOTS_PER_INCH = 200


@dataclass(frozen=True)
class Figure:
    """A finished figure."""

    name: str
    """Of its files, without their ending."""
    title: str
    caption: str
    svg: str
    png: bytes
    inline: str
    """The SVG element with the page's colours."""


@contextmanager
def drawing(legend_entries: int = 0, height: float = HEIGHT) -> Iterator[tuple[Drawing, Axes]]:
    """Yield a drawing with one pair of axes, ``height`` inches high, and room below for a legend of two columns."""
    with matplotlib.rc_context(rc=_STYLE):
        lines = (legend_entries + 1) // 2
        canvas = Drawing(figsize=(WIDTH, height + lines * LEGEND_LINE), layout="constrained")
        yield canvas, canvas.add_subplot()


def legend_label(name: str) -> str:
    """Return a name for the legend, from which matplotlib leaves out those that begin with an underscore."""
    return f" {name}" if name.startswith("_") else name


def legend_below(canvas: Drawing, axes: Axes) -> None:
    """Draw a legend of everything labelled, under the axes."""
    handles, labels = axes.get_legend_handles_labels()
    if handles:
        canvas.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=9, columnspacing=1.5)


def plain_numbers(axis: Axis) -> None:
    """Write a logarithmic axis in plain numbers; matplotlib's own are formulas, of which one would see the source."""
    plain = FuncFormatter(lambda value, _: f"{value:,g}")
    axis.set_major_formatter(plain)
    low, high = axis.get_view_interval()
    few = max(low, high) / min(low, high) < 20  # hardly a power of ten among the ticks
    axis.set_minor_formatter(plain if few else NullFormatter())


def finish(canvas: Drawing, name: str, title: str, caption: str) -> Figure:
    """Render a drawing; within ``with drawing()``."""
    svg = _svg(canvas, "white")
    png = io.BytesIO()
    canvas.savefig(png, format="png", dpi=DOTS_PER_INCH, facecolor="white", metadata={"Software": None})
    return Figure(name, title, caption, svg, png.getvalue(), _inline(_svg(canvas, "none"), name, title))


def _svg(canvas: Drawing, background: str) -> str:
    stream = io.StringIO()
    canvas.savefig(stream, format="svg", facecolor=background, metadata={"Date": None, "Creator": None})
    return stream.getvalue()


def _inline(svg: str, name: str, title: str) -> str:
    """Return the svg element: ids of its own, colours and fonts by the page's style sheet, a name to be read aloud."""
    element = svg[svg.index("<svg") :]
    element = re.sub(r"<metadata>.*?</metadata>", "", element, flags=re.DOTALL)
    element = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', element)
    element = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', element)
    element = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", element)
    element = re.sub(r"font: ([\d.]+)px [^;\"]+", r"font: \1px var(--font)", element)
    for colour in DARK:
        element = element.replace(colour, f"var({variable(colour)})")
    label = title.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    return element.replace("<svg", f'<svg role="img" aria-label="{label}"', 1)


def variable(colour: str) -> str:
    """Return the name that the page's style sheet knows a colour by."""
    return f"--c{colour.lstrip('#')}"
