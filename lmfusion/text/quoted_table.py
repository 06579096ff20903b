"""Split tab-separated lines into fields, quoted as CSV writers do it, or not quoted at all (GLUE's)."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator

_QUOTE = '"'


def fields_of(record: str) -> list[str]:
    r"""Split a row at its tabs, those in quotes left out where a CSV writer quoted it.

    That is so where a writer that quotes what needs it, or everything, would have written this very row:
    ``"a ""b"" c"`` is ``a "b" c``, while ``"Well" he said`` and ``"Well."`` beside fields without quotes keep theirs.

    Args:
        record: the row, without the line end behind it.
    """
    literal = record.split("\t")
    if _QUOTE not in record:
        return literal
    try:
        (found,) = csv.reader(io.StringIO(record, newline=""), delimiter="\t", strict=True)
    except (csv.Error, ValueError):  # a lone quote; several rows or none
        return literal
    return found if record in (_written(found, csv.QUOTE_MINIMAL), _written(found, csv.QUOTE_ALL)) else literal


def rows_of(lines: Iterable[tuple[int, str]], columns: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of a row's first line, and its fields; a row in quotes may go over several lines.

    Args:
        lines: with their numbers; those without anything but white space are left out between rows.
        columns: fields of a row. A line that has as many begins a row of its own, whatever was open before it.
    """
    held: list[tuple[int, str]] = []
    for number, line in lines:
        if held and (line.count("\t") + 1 == columns or not _is_open(held)):
            yield from _rows(held)
            held = []
        if held or line.strip():
            held.append((number, line))
    yield from _rows(held)


def _rows(held: list[tuple[int, str]]) -> Iterator[tuple[int, list[str]]]:
    """Yield lines as one row if quotes hold them together, else each as a row."""
    whole = _joined(held)
    if len(held) > 1 and (fields := fields_of(whole)) != whole.split("\t"):
        yield held[0][0], fields
    else:
        yield from ((number, fields_of(line)) for number, line in held if line.strip())


def _joined(held: list[tuple[int, str]]) -> str:
    return "\n".join(line for _, line in held)


def _is_open(held: list[tuple[int, str]]) -> bool:
    """Tell whether a quote that begins a field has not come to its end."""
    record = _joined(held)
    begins = record.startswith(_QUOTE) or f"\t{_QUOTE}" in record
    return begins and record.count(_QUOTE) % 2 == 1


def _written(fields: list[str], quoting: int) -> str:
    stream = io.StringIO(newline="")
    csv.writer(stream, delimiter="\t", quoting=quoting, lineterminator="\n").writerow(fields)  # type: ignore[arg-type]
    return stream.getvalue().removesuffix("\n")
