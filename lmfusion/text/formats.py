"""Parallel text as people have it: two plain files, a table (TSV), JSON lines or a translation memory (TMX).

Each reader can be read from the start several times and yields the same pairs each time: first to choose what is held
out, then to write it, so that no text has to be in memory.
"""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from lmfusion.text.opening import clean, read_text
from lmfusion.text.quoted_table import fields_of
from lmfusion.text.textio import DataError

Pair = tuple[str, str]


class Pairs(ABC):
    """Pairs of a source and a target text, in the order of their file.

    Attributes:
        paths: the files they are read from.
        languages: of source and target, where they are known; by them the encoding is guessed of what is not UTF-8.
        notes: what a person should know about the reading, complete after the pairs were read once.
    """

    def __init__(self, *paths: Path, languages: tuple[str, ...] = ()) -> None:
        self.paths, self.languages = paths, languages
        self.notes: list[str] = []

    def __iter__(self) -> Iterator[Pair]:
        """Yield every pair, white space made single spaces; a side may be empty.

        Raises:
            DataError: a file cannot be read, or does not have the form it should have.
        """
        self.notes = []
        for source, target in self.read():
            yield clean(source), clean(target)

    @abstractmethod
    def read(self) -> Iterator[Pair]:
        """Yield every pair as it stands in the file."""


class PlainPairs(Pairs):
    """Two files, line by line."""

    def read(self) -> Iterator[Pair]:
        """Yield line n of the one file with line n of the other.

        Raises:
            DataError: they have unequal numbers of lines.
        """
        counts = [0, 0]
        texts = [read_text(path, self.languages[side : side + 1]) for side, path in enumerate(self.paths)]
        for source, target in zip_longest(*texts):
            counts[0] += source is not None
            counts[1] += target is not None
            if source is not None and target is not None:
                yield source, target
        if counts[0] != counts[1]:
            raise UnequalError(
                f"{self.paths[0]} has {counts[0]:,} lines but {self.paths[1]} has {counts[1]:,}: line n of the one "
                f"must be the translation of line n of the other. Is one of them cut short, or has extra lines?"
            )


class UnequalError(DataError):
    """Two files that belong together have unequal numbers of lines."""


class TablePairs(Pairs):
    """Two columns of a table whose columns are separated by tabulators.

    Quotation marks are text like any other, for a sentence may stand in them. What a CSV writer has certainly quoted, a
    cell with marks that are doubled, is noted.
    """

    def __init__(self, path: Path, fields: tuple[str, str] | None, names: tuple[str, str]) -> None:
        super().__init__(path, languages=names)
        self.path, self.fields, self.names = path, fields, names

    def read(self) -> Iterator[Pair]:
        """Yield the two columns of every row that is not blank.

        Raises:
            DataError: there is no such column, or a row lacks it.
        """
        columns, width, quoted = (0, 1), 2, []
        for number, line in enumerate(read_text(self.path, self.languages), start=1):
            cells = line.split("\t")
            if '""' in line and fields_of(line) != cells:
                quoted.append(number)
            if number == 1:
                columns, width, header = self._columns(cells)
                if header:
                    continue
            if not line.strip():
                yield "", ""
            elif len(cells) < width or (self.fields is None and len(cells) > width):
                raise DataError(
                    f"{self.path}, line {number}: has {len(cells)} columns, where {width} are needed. Columns are "
                    f"separated by tabulators."
                )
            else:
                yield cells[columns[0]], cells[columns[1]]
        if quoted:
            self.notes.append(
                f"{self.path}: lines with doubled quotation marks, as CSV writers make them: {len(quoted):,}, the "
                f"first is {quoted[0]:,}. The marks stay in the text: write it without (pandas: quoting=csv.QUOTE_NONE)"
            )

    def _columns(self, first: list[str]) -> tuple[tuple[int, int], int, bool]:
        """Return the two columns' places, how many columns a row must have, and whether the first row is a header."""
        cells = [clean(cell) for cell in first]
        header = True
        if self.fields is None:
            if len(cells) != 2:
                raise DataError(
                    f"{self.path}, line 1: has {len(cells)} columns separated by tabulators. Two are needed; of more, "
                    f"say which by their numbers or by what the first line calls them: --fields 1,2."
                )
            header = {cell.casefold() for cell in cells} == {name.casefold() for name in self.names}
            order = [cell.casefold() for cell in cells].index(self.names[0].casefold()) if header else 0
            places = (order, 1 - order)
        elif all(field.isdecimal() for field in self.fields):
            header, places = False, (int(self.fields[0]) - 1, int(self.fields[1]) - 1)
            if min(places) < 0 or max(places) >= len(cells):
                raise DataError(f"{self.path} has {len(cells)} columns: --fields takes two numbers from 1 on.")
        elif missing := [field for field in self.fields if field not in cells]:
            raise DataError(f"{self.path}: no column {missing[0]!r}. Its first line names {', '.join(cells)[:200]}.")
        else:
            places = (cells.index(self.fields[0]), cells.index(self.fields[1]))
        taken = " and ".join(f"{place + 1}{f' ({cells[place]})' if header else ''}" for place in places)
        self.notes.append(f"{self.path}: source and target are columns {taken}")
        return places, len(cells) if self.fields is None else max(places) + 1, header


class JsonPairs(Pairs):
    """Two values of every object of a JSON-lines file. A key with dots reaches into objects: translation.en."""

    def __init__(self, path: Path, fields: tuple[str, str], languages: tuple[str, ...] = ()) -> None:
        super().__init__(path, languages=languages)
        self.path, self.fields = path, fields

    def read(self) -> Iterator[Pair]:
        """Yield the two values of every line that is not blank.

        Raises:
            DataError: a line is no JSON object, lacks a key, or has no text there.
        """
        for number, line in enumerate(read_text(self.path, self.languages), start=1):
            if not line.strip():
                yield "", ""
                continue
            where = f"{self.path}, line {number}"
            try:
                entry = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{where}: no JSON ({error}). Each line must be one object.") from error
            if isinstance(entry, list):
                raise DataError(
                    f"{where}: a list, where each line must be one object: `jq -c '.[]' {self.path.name}` makes lines."
                )
            yield _text(entry, self.fields[0], where), _text(entry, self.fields[1], where)


def _text(entry: Any, field: str, where: str) -> str:
    """Return the text of one key; a list of texts is joined, null is empty."""
    value = entry
    for key in [field] if isinstance(entry, dict) and field in entry else field.split("."):
        if not isinstance(value, dict) or key not in value:
            there = ", ".join(value) if isinstance(value, dict) else f"no keys but {json.dumps(value)[:40]}"
            raise DataError(f"{where}: no key {key!r}; there is {there[:200]}. Name the keys: --fields SOURCE,TARGET.")
        value = value[key]
    if value is None:
        return ""
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        value = " ".join(value)
    if not isinstance(value, str):
        raise DataError(f"{where}: {field!r} is {json.dumps(value)[:40]}, and a text is needed (in quotes).")
    if re.search("[\0\ud800-\udfff]", value):
        raise DataError(f"{where}: {field!r} is {json.dumps(value)[:40]}, which has characters that no text has.")
    return value
