"""A table, as the page shows it, as Markdown and as CSV."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from lmfusion.report.page.markdown import escape, escape_cell
from lmfusion.text.printable import printable

_FORMULA = re.compile(r"[=@]|[+-](?![\d.,]+(?:%|\s|$))")
"""Text that a spreadsheet would compute; "-1.2 (-2 to 0)" it would not."""


@dataclass(frozen=True)
class Cell:
    """Content of one place of a table."""

    text: str = ""
    note: str = ""
    """A second line in small letters: a published figure, how many seeds."""
    bad: bool = False
    """Whether something is wrong with it, so that it has to catch the eye."""
    best: bool = False
    """Whether it is the best of its column."""


@dataclass(frozen=True)
class Table:
    """Rows of cells under headings; the first cell of a row names it."""

    name: str
    """Of its files, without their ending."""
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    notes: Sequence[str] = ()
    words: Sequence[int] = ()
    """Columns besides the first that hold words, not numbers."""
    records: pd.DataFrame | None = None
    """What the CSV file holds where plain numbers say more than the cells' text."""


def cells(*texts: object) -> list[Cell]:
    """Return a row of plain cells."""
    return [Cell(str(text)) for text in texts]


def size_name(size: int | None) -> str:
    """Return a number of training pairs as the paper writes it: 160K, 2.5K."""
    if size is None:
        return "unknown size"
    if size < 1000 or size % 100:
        return f"{size:,}"
    return f"{size / 1000:g}K"


def plus_minus(mean: float, deviation: float, form: str) -> str:
    """Return "mean ± standard deviation" in a number format; without a deviation or a mean that is NaN."""
    if pd.isna(mean):
        return ""
    return format(mean, form) + ("" if pd.isna(deviation) else f" ± {deviation:{form}}")


def to_markdown(table: Table) -> str:
    """Return the table with its title and notes as Markdown."""
    kinds = ["---" if i in (0, *table.words) else "---:" for i in range(len(table.columns))]
    lines = [
        f"### {escape(table.title)}",
        "",
        "| " + " | ".join(map(escape_cell, table.columns)) + " |",
        f"|{'|'.join(kinds)}|",
    ]
    for row in table.rows:
        marks = ["**" if cell.best and cell.text else "" for cell in row]
        texts = [
            _one_line(Cell(f"{mark}{escape_cell(c.text)}{mark}", escape_cell(c.note))) for mark, c in zip(marks, row)
        ]
        lines.append("| " + " | ".join(texts) + " |")
    for note in table.notes:
        lines += ["", escape(note)]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Return the table's records or, without any, its cells as CSV under a line of headings."""
    frame = table.records
    if frame is None:
        frame = pd.DataFrame([[_one_line(cell) for cell in row] for row in table.rows], columns=list(table.columns))
    text: str = frame.round(4).map(_as_text).to_csv(index=False, lineterminator="\n")
    return text


def _as_text(value: object) -> object:
    """Return a cell that no spreadsheet takes for a formula: names in it may be a stranger's."""
    if not isinstance(value, str):
        return value
    value = printable(value)
    return f"'{value}" if _FORMULA.match(value) else value


def _one_line(cell: Cell) -> str:
    return f"{cell.text} ({cell.note})" if cell.note and cell.text else cell.text or cell.note
