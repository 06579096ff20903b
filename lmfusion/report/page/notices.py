"""What a reader has to know before believing a table: said in the page and on the terminal in the same words."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partialmethod

from lmfusion.text.printable import printable

BAD_INPUT, WARNING, NOTE = "bad input", "warning", "note"


@dataclass(frozen=True)
class Notice:
    """One thing to know."""

    kind: str
    """BAD_INPUT: a run could not be read. WARNING: figures are left out or apart. NOTE: how to read something."""
    text: str


@dataclass
class Notices:
    """All of them, in the order in which they were found."""

    found: list[Notice] = field(default_factory=list)

    def add(self, kind: str, text: str) -> None:
        """Add a notice unless it is there already."""
        # Files of a run folder are quoted here: nothing of them may move a terminal's cursor or begin a line.
        notice = Notice(kind, printable(text))
        if notice not in self.found:
            self.found.append(notice)

    bad_input = partialmethod(add, BAD_INPUT)
    warn = partialmethod(add, WARNING)
    note = partialmethod(add, NOTE)

    def of_kind(self, kind: str) -> list[Notice]:
        """Return the notices of one kind."""
        return [notice for notice in self.found if notice.kind == kind]
