"""What a reader has to know before believing a table: said in the page and on the terminal in the same words."""

from __future__ import annotations

from dataclasses import dataclass, field

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

    def bad_input(self, text: str) -> None:
        """A run, or a part of one, that could not be read."""
        self._add(BAD_INPUT, text)

    def warn(self, text: str) -> None:
        """Figures that are left out, or stand apart from others."""
        self._add(WARNING, text)

    def note(self, text: str) -> None:
        """How something is to be read."""
        self._add(NOTE, text)

    def of_kind(self, kind: str) -> list[Notice]:
        """Those of one kind."""
        return [notice for notice in self.found if notice.kind == kind]

    def _add(self, kind: str, text: str) -> None:
        notice = Notice(kind, text)
        if notice not in self.found:
            self.found.append(notice)
