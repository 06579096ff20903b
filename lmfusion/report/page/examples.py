"""Outputs side by side: source, reference, and each system's with the words marked that the reference does not have."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from lmfusion.report import side_by_side
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.runs import Run
from lmfusion.report.page.score_tables import size_name
from lmfusion.report.page.texts import Texts, hypotheses

_WORD = re.compile(r"\w+|[^\w\s]")


@dataclass(frozen=True)
class Piece:
    """A stretch of text, and whether it is marked."""

    text: str
    marked: bool


@dataclass(frozen=True)
class Example:
    """A sentence."""

    number: int
    """Counted from 1."""
    source: str
    reference: str
    systems: list[tuple[str, list[Piece]]]


@dataclass(frozen=True)
class Examples:
    """Sentences at equal distances through a test set."""

    title: str
    caption: str
    items: list[Example]


def make_examples(comparison: Comparison, size: int | None, texts: Texts, count: int) -> Examples | None:
    """Of the first seed of each row at one bitext size; None if no run's output is at hand."""
    data_set, labels = comparison.task.data_set, []
    systems: dict[str, Sequence[str]] = {}
    for row in comparison.rows:
        run = next(iter(row.cell(size).used), None)
        lines = hypotheses(run, data_set, len(texts.sources)) if run else None
        if run and lines:
            systems[row.name] = lines
            labels.append(_described(run, row.name))
    if not systems or count < 1:
        return None
    picked = side_by_side.pick_examples(texts.sources, texts.references, systems, min(count, len(texts.sources)))
    items = [
        Example(
            *(each.number, each.source, each.reference),
            [(name, mark(text, each.reference)) for name, text in each.hypotheses.items()],
        )
        for each in picked
    ]
    at = f", {size_name(size)} pairs" if size else ""
    printed = [name for name, raw in (("source", texts.raw_source), ("reference", texts.raw_reference)) if not raw]
    inexact = f" As fairseq-generate printed it, not the raw text: {' and '.join(printed)}." if printed else ""
    caption = (
        f"{len(items)} of {len(texts.sources):,} sentences, at equal distances; nobody chose them. Marked: words that "
        f"the reference does not have at that place. Systems: {', '.join(labels)}.{inexact}"
    )
    return Examples(f"Examples from {comparison.task.title}{at}", caption, items)


def _described(run: Run, row: str) -> str:
    return f"{row} (seed {run.seed})" if run.seed is not None else row


def mark(text: str, reference: str) -> list[Piece]:
    """The text in pieces, those marked that are no part of the longest matching runs of words with the reference."""
    words, theirs = list(_WORD.finditer(text)), _WORD.findall(reference)
    matcher = SequenceMatcher(None, [word[0] for word in words], theirs, autojunk=False)
    same = {place for start, _, length in matcher.get_matching_blocks() for place in range(start, start + length)}
    pieces: list[Piece] = []
    end = 0
    for place, word in enumerate(words):
        _append(pieces, text[end : word.start()], marked=bool(pieces) and pieces[-1].marked and place not in same)
        _append(pieces, word[0], marked=place not in same)
        end = word.end()
    _append(pieces, text[end:], marked=False)
    return pieces


def _append(pieces: list[Piece], text: str, marked: bool) -> None:
    """Add text, to the last piece if it is marked alike."""
    if not text:
        return
    if pieces and pieces[-1].marked == marked:
        pieces[-1] = Piece(pieces[-1].text + text, marked)
    else:
        pieces.append(Piece(text, marked))


def to_markdown(examples: Examples) -> str:
    """The same with marked words in bold."""
    lines = [f"### {examples.title}", "", examples.caption]
    for example in examples.items:
        lines += ["", f"**#{example.number}** {_escape(example.source)}", "", "| | |", "|---|---|"]
        lines.append(f"| reference | {_escape(example.reference)} |")
        for name, pieces in example.systems:
            text = "".join(_bold(piece) if piece.marked else _escape(piece.text) for piece in pieces)
            lines.append(f"| {_escape(name)} | {text} |")
    return "\n".join(lines) + "\n"


def _bold(piece: Piece) -> str:
    return f"**{_escape(piece.text.strip())}**" + " " * (len(piece.text) - len(piece.text.rstrip()))


def _escape(text: str) -> str:
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)
