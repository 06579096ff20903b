"""What the commands that report on a terminal share: how a table looks there, --save, and errors in one line."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from lmfusion.errors import exit_status

FILE_WIDTH = 120


def make_table(
    headings: Sequence[str], rows: Sequence[Sequence[str | Text]], words: Sequence[int] = (0,), **look: str
) -> Table:
    """Return a table for the terminal, where no text is taken for markup.

    Args:
        headings: of the columns.
        rows: their cells; what a string holds, markup included, is shown as it is.
        words: columns of words, on the left; numbers stand on the right.
        look: title and caption, on the left.
    """
    looks: dict[str, Any] = {name: Text(text, style=f"table.{name}") for name, text in look.items()}
    table = Table(title_justify="left", caption_justify="left", **looks)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place in words else "right")
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(cell) for cell in row))
    return table


def number(value: float | None, form: str) -> str:
    """Return a number in this form, or nothing."""
    return "" if value is None else format(value, form)


def run_command(parser: argparse.ArgumentParser, show: Callable[[Console, argparse.Namespace], None]) -> int:
    """Parse the command line, print what ``show`` shows, save it as text if asked to, and return the exit status."""
    parser.add_argument("--save", type=Path, help="write the same as text to this file")
    args = parser.parse_args()
    console = Console(record=True, width=None if sys.stdout.isatty() else FILE_WIDTH)

    def run() -> None:
        show(console, args)
        if args.save:
            console.save_text(str(args.save))

    return exit_status(run)
