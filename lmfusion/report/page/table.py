"""A table, as the page shows it, as Markdown and as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Cell:
    """What stands in one place of a table."""

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
    records: Sequence[Sequence[object]] = field(default=())
    """What the CSV file holds, headings first, where plain numbers say more than the cells' text."""


def to_markdown(table: Table) -> str:
    """The table with its title and notes."""
    lines = [f"### {table.title}", ""]
    lines.append(_markdown_row(table.columns))
    lines.append("|---|" + "".join("---|" if i in table.words else "---:|" for i in range(1, len(table.columns))))
    lines.extend(_markdown_row([_one_line(cell, "**" if cell.best else "") for cell in row]) for row in table.rows)
    for note in table.notes:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def to_csv(table: Table) -> str:
    """Its records or, without any, its cells."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    if table.records:
        writer.writerows(table.records)
    else:
        writer.writerow(table.columns)
        writer.writerows([_one_line(cell) for cell in row] for row in table.rows)
    return stream.getvalue()


def _one_line(cell: Cell, marks: str = "") -> str:
    text = f"{marks}{cell.text}{marks}"
    return f"{text} ({cell.note})" if cell.note and text else text or cell.note


def _markdown_row(words: Sequence[str]) -> str:
    escaped = (word.replace("|", "\\|").replace("\n", " ") for word in words)
    return "| " + " | ".join(escaped) + " |"
