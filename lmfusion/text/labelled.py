"""Read labelled sentences and pairs from tab-separated files: those of SST, CFIMDB, Quora and STS, and GLUE's.

The columns are found by their names in the first line; :func:`read_examples` says which it took. Fields may be quoted
as in CSV files, see :mod:`lmfusion.text.quoted_table`.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.text.printable import unless_unseen
from lmfusion.text.quoted_table import fields_of, rows_of
from lmfusion.text.textio import DataError, read_lines

logger = logging.getLogger(__name__)

CLASS, BINARY, SCORE, TAGS = KINDS = ("class", "binary", "score", "tags")
"""Kinds of tasks: one class of several, yes or no, a number of 0 to 5, a tag for each word."""
HIGHEST = 5.0
"""The highest score."""

_PAIRS = (
    ("sentence1", "sentence2"),
    ("question1", "question2"),
    ("#1 String", "#2 String"),
    ("question", "sentence"),
    ("premise", "hypothesis"),
)
_SINGLE = ("sentence", "text", "tokens")
_LABELS = {
    TAGS: ("tags",),
    SCORE: ("similarity", "score"),
    BINARY: ("is_duplicate", "is_match", "Quality"),
    CLASS: ("gold_label", "label", "sentiment"),
}
_COLA = ["source", "label", "mark", "sentence"]  # the one file of GLUE's without names of columns
_FILES = {"train": ("train",), "valid": ("valid", "dev", "dev_matched"), "test": ("test", "test_matched")}
_ENDINGS = tuple(kind + packed for kind in (".tsv", ".csv", ".txt") for packed in ("", ".gz", ".xz"))


@dataclass(frozen=True)
class Example:
    """One row: its line in the file, its one or two texts, and its label where the file has one."""

    line: int
    texts: tuple[str, ...]
    label: str | None = None


@dataclass(frozen=True)
class Columns:
    """The columns that were taken.

    Attributes:
        names: of all columns, in order.
        texts: of the one or two texts.
        label: of the label; None: the file has none.
        kind: of the task, as the label's name says; None without a label.
        named: False if the file does not begin with the names.
    """

    names: tuple[str, ...]
    texts: tuple[str, ...]
    label: str | None
    kind: str | None
    named: bool = True

    def __str__(self) -> str:
        label = "no label" if self.label is None else f"label {self.label!r} ({self.kind})"
        return f"text {' and '.join(map(repr, self.texts))}, {label}"


def find_file(place: str, split: str) -> Path:
    """Find the file of a split.

    Args:
        place: a folder (``data/quora`` with ``train.tsv``, ``dev.tsv``), or what stands before the split's name
            (``data/ids-sst`` for ``data/ids-sst-train.csv``).
        split: ``"train"``, ``"valid"`` (in files also ``dev``), ``"test"``, or another name.

    Raises:
        DataError: there is none.
    """
    path = Path(place)
    stem = f"{path}/" if path.is_dir() else f"{path}-"
    names = [f"{stem}{name}{ending}" for name in _FILES.get(split, (split,)) for ending in _ENDINGS]
    found = next((Path(name) for name in names if Path(name).is_file()), None)
    if found is None:
        raise DataError(f"{place}: has no data for {split}: there is no {names[0]}, nor .csv or .txt in its place.")
    return found


def columns_of(line: str, path: Path, kind: str | None = None) -> Columns:
    """Return the columns by the first line of a file.

    Args:
        line: the first.
        path: of the file, for messages.
        kind: of the task, where it is given and not read off the label's name.

    Raises:
        DataError: naming the file, if there is no column of text.
    """
    names = tuple(fields_of(line))
    known: tuple[tuple[str, ...], ...] = (*_PAIRS, *((name,) for name in _SINGLE))
    texts = next((each for each in known if set(each) <= set(names)), ())
    if not texts:
        if len(names) == len(_COLA) and names[1] in ("0", "1"):
            return Columns(tuple(_COLA), ("sentence",), "label", kind or CLASS, named=False)
        pairs = ", ".join(" and ".join(pair) for pair in _PAIRS)
        there = f"there are {', '.join(names)[:200]}" if len(names) > 1 else "no tab separates columns there"
        raise DataError(f"{path}, line 1: no column with text: name one of {', '.join(_SINGLE)}, or {pairs}; {there}.")
    every = [(of, name) for of, known in _LABELS.items() for name in known if name in names]
    found = next(iter(every), None)
    for name in (*texts, *([found[1]] if found else [])):
        if names.count(name) > 1:
            raise DataError(f"{path}, line 1: {names.count(name)} columns are called {name!r}: rename all but one.")
    return Columns(names, texts, found[1] if found else None, (kind or found[0]) if found else None)


def read_examples(path: Path, *, kind: str | None = None, labelled: bool = True) -> tuple[Columns, list[Example]]:
    """Read all rows of a file.

    Args:
        path: of the file, plain, .gz or .xz.
        kind: of the task, where it is given.
        labelled: whether a label is needed.

    Returns:
        The columns taken, and the rows; labels of ``binary`` are "0" or "1", texts have single spaces. Rows with an
        empty label are left out with a warning where a label is needed, else theirs is None.

    Raises:
        DataError: naming file and line, if a column is missing, a text is empty or a label is none.
    """
    lines = _numbered(path)
    first = next(lines)
    columns = columns_of(first[1], path, kind)
    if labelled and columns.label is None:
        known = ", ".join(name for names in _LABELS.values() for name in names)
        raise DataError(f"{path}, line 1: no column with labels: name one of {known}.")
    rows = lines if columns.named else iter([first, *lines])
    values = [(number, _by_name(path, number, each, columns)) for number, each in rows_of(rows, len(columns.names))]
    if not values:
        raise DataError(f"{path}: has no rows below the names of its columns.")
    if labelled:
        values = _with_label(path, values, str(columns.label))
    return columns, [_example(path, number, each, columns) for number, each in values]


def _numbered(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a file with their numbers; refuse one without any."""
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        yield number, line
    if not number:
        raise DataError(f"{path}: is empty.")


def _by_name(path: Path, number: int, fields: list[str], columns: Columns) -> dict[str, str]:
    if len(fields) != len(columns.names):
        raise DataError(
            f"{path}, line {number}: {len(fields)} columns, and the first line has {len(columns.names)}: separate them "
            f"by one tab each."
        )
    return dict(zip(columns.names, fields))


def _with_label(path: Path, rows: list[tuple[int, dict[str, str]]], name: str) -> list[tuple[int, dict[str, str]]]:
    """Return the rows that have a label, and warn of the others: Quora's own file has two of them."""
    found = [row for row in rows if row[1][name].strip()]
    without = [number for number, values in rows if not values[name].strip()]
    if not found:
        raise DataError(f"{path}, line {without[0]}: the label is empty, as in all rows.")
    if without:
        lines = f"{', '.join(map(str, without[:3]))}{' …' if len(without) > 3 else ''}"
        logger.warning(f"{path}: {len(without):,} of {len(rows):,} rows have no label and are left out: line {lines}.")
    return found


def _example(path: Path, number: int, values: dict[str, str], columns: Columns) -> Example:
    texts = tuple(unless_unseen(" ".join(values[name].split())) for name in columns.texts)
    for name, text in zip(columns.texts, texts):
        if not text:
            raise DataError(f"{path}, line {number}: the text in column {name!r} is empty.")
    label = "" if columns.label is None else values[columns.label].strip()
    return Example(number, texts, _label(path, number, label, columns, texts) if label else None)


def _label(path: Path, number: int, label: str, columns: Columns, texts: Sequence[str]) -> str:
    place = f"{path}, line {number}: {columns.label} {label!r}"
    if columns.kind == BINARY and (label := label.removesuffix(".0")) not in ("0", "1"):
        raise DataError(f"{place} is neither 0 nor 1.")
    if columns.kind == SCORE and not 0 <= _number(label) <= HIGHEST:
        raise DataError(f"{place} is no score from 0 to {HIGHEST:g}.")
    if columns.kind == TAGS and len(label.split()) != len(texts[0].split()):
        raise DataError(f"{place}: {len(label.split())} tags for {len(texts[0].split())} words.")
    return label


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def read_texts(path: Path, texts: int) -> tuple[Columns | None, list[Example]]:
    """Read a file to be labelled: one with names of columns in its first line, or plain lines.

    Args:
        path: of the file.
        texts: 1 for sentences, 2 for pairs, between which plain lines have a tab.

    Returns:
        The columns (None: plain lines), and the rows, with their labels if there are any.

    Raises:
        DataError: naming file and line of an empty or missing text, or the file that has none at all.
    """
    names = fields_of(next(_numbered(path))[1])
    if any(name in names for name in _SINGLE) or any(set(pair) <= set(names) for pair in _PAIRS):
        return read_examples(path, labelled=False)
    examples = []
    for number, line in _numbered(path):
        parts = tuple(unless_unseen(" ".join(part.split())) for part in line.split("\t"))
        if len(parts) != texts or not all(parts):
            found, tab = f"{len(parts)} of them" if all(parts) else "an empty one", " with a tab between" * (texts > 1)
            raise DataError(f"{path}, line {number}: give {texts} text{'s' * (texts > 1)}{tab}: this line has {found}.")
        examples.append(Example(number, parts))
    return None, examples
