"""Outputs side by side: source, reference, and each system's with the words marked that the reference does not have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby

import regex

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.markdown import escape, escape_cell
from lmfusion.report.page.table import size_name
from lmfusion.report.page.texts import Texts, hypotheses
from lmfusion.scoring.unicode_words import TOKEN, share_of_letters
from lmfusion.text.languages import is_language

MOST = 0.5
"""Share of letters without spaces between words above which it is said that characters are marked."""
_WORD = regex.compile(rf"{TOKEN}|\S", regex.V1)


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
    languages: tuple[str, str] = ("", "")
    """Of source and target, as HTML names them (``zh-CN``); empty where unknown."""


def equally_spaced(total: int, count: int) -> list[int]:
    """Return at most ``count`` of the numbers below ``total``, at equal distances: nobody chose them."""
    count = min(total, count)
    return [(2 * number + 1) * total // (2 * count) for number in range(count)]


def make_examples(comparison: Comparison, size: int | None, texts: Texts, count: int) -> Examples | None:
    """Return outputs of the first seed of each row at one bitext size; None if no run's output is at hand."""
    systems: dict[str, Sequence[str]] = {}
    labels = []
    for row in comparison.rows:
        run = next(iter(row.cell(size).used), None)
        if run and (lines := hypotheses(run, comparison.task.data_set, len(texts.sources))):
            systems[row.name] = lines
            labels.append(row.name if run.seed is None else f"{row.name} (seed {run.seed})")
    if not systems or count < 1:
        return None
    items = [
        Example(
            *(place + 1, texts.sources[place], texts.references[place]),
            [(name, mark(lines[place], texts.references[place])) for name, lines in systems.items()],
        )
        for place in equally_spaced(len(texts.sources), count)
    ]
    at = f", {size_name(size)} pairs" if size else ""
    printed = [name for name, raw in (("source", texts.raw_source), ("reference", texts.raw_reference)) if not raw]
    inexact = f" As fairseq-generate printed it, not the raw text: {' and '.join(printed)}." if printed else ""
    what = "characters" if share_of_letters(texts.references) > MOST else "words"
    caption = (
        f"{len(items)} of {len(texts.sources):,} sentences, at equal distances; nobody chose them. Marked: {what} that "
        f"the reference does not have at that place. Systems: {', '.join(labels)}.{inexact}"
    )
    source, target = map(_html_name, comparison.task.language_pair)
    return Examples(f"Examples from {comparison.task.title}{at}", caption, items, (source, target))


def _html_name(language: str) -> str:
    """Return a language as HTML names it; empty for a name that is none, as sides of summaries have."""
    return language.replace("_", "-") if is_language(language) else ""


def mark(text: str, reference: str) -> list[Piece]:
    """Return the text in pieces, those marked that are no part of the longest matching runs of words."""
    words, theirs = list(_WORD.finditer(text)), _WORD.findall(reference)
    matcher = SequenceMatcher(None, [word[0] for word in words], theirs, autojunk=False)
    same = {place for start, _, length in matcher.get_matching_blocks() for place in range(start, start + length)}
    letters = [False] * len(text)
    for place, word in enumerate(words):
        if place not in same:
            # With the space before it, where the word before is marked, too.
            start = words[place - 1].end() if place and place - 1 not in same else word.start()
            letters[start : word.end()] = [True] * (word.end() - start)
    runs = groupby(range(len(text)), key=letters.__getitem__)
    return [Piece("".join(text[place] for place in places), marked) for marked, places in runs]


def to_markdown(examples: Examples) -> str:
    """Return the same as Markdown with marked words in bold."""
    lines = [f"### {escape(examples.title)}", "", escape(examples.caption)]
    for example in examples.items:
        lines += ["", f"**#{example.number}** {escape(example.source)}", "", "| | |", "|---|---|"]
        lines.append(f"| reference | {escape_cell(example.reference)} |")
        for name, pieces in example.systems:
            texts = (escape_cell(piece.text) for piece in pieces)
            shown = "".join(f"**{text}**" if piece.marked else text for piece, text in zip(pieces, texts))
            lines.append(f"| {escape_cell(name)} | {shown} |")
    return "\n".join(lines) + "\n"
