"""The table of sources: where each file comes from and what is known of it (data-prep/sources.tsv)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from lmfusion.text import textio

TABLE = Path(__file__).resolve().parents[1] / "sources.tsv"
COLUMNS = ["name", "file", "url", "bytes", "checksum", "counts", "licence", "note"]
ALGORITHMS = ("sha256", "md5")
UNKNOWN = "-"
ESTIMATE = "~"


@dataclass(frozen=True)
class Count:
    """How many lines or pairs a file should have; an estimate is only reported, not required."""

    number: int
    exact: bool


@dataclass(frozen=True)
class Source:
    """One row of the table."""

    name: str
    file: str
    url: str
    size: int
    """In bytes; see `size_known`."""
    size_known: bool
    checksum: str | None
    """ALGORITHM:HEXDIGITS"""
    counts: dict[str, Count]
    licence: str
    note: str
    local: Path | None = None
    """A file to take instead of a download."""


def read_table(path: Path) -> dict[str, Source]:
    """The rows of a table of sources, by name.

    Raises:
        DataError: no such file, other columns, or a value that cannot be read; names the line.
    """
    lines = list(textio.read_lines(path))
    if not lines or lines[0].split("\t") != COLUMNS:
        raise textio.DataError(
            f"{path}: not a table of sources. Its first line must be {' '.join(COLUMNS)} (with tabs)."
        )
    table: dict[str, Source] = {}
    for number, line in enumerate(lines[1:], start=2):
        try:
            source = _parse(line)
        except ValueError as error:
            raise textio.DataError(f"{path}, line {number}: {error}") from error
        if source.name in table:
            raise textio.DataError(f"{path}, line {number}: {source.name} is there twice")
        table[source.name] = source
    return table


def _parse(line: str) -> Source:
    cells = line.split("\t")
    if len(cells) != len(COLUMNS):
        raise ValueError(f"{len(cells)} columns instead of {len(COLUMNS)}")
    row = dict(zip(COLUMNS, cells))
    checksum = None if row["checksum"] == UNKNOWN else row["checksum"]
    if checksum is not None and checksum.partition(":")[0] not in ALGORITHMS:
        raise ValueError(f"checksum {checksum}: expected one of {', '.join(a + ':…' for a in ALGORITHMS)}, or -")
    if row["bytes"] == UNKNOWN:
        raise ValueError("bytes: give the size, or an estimate such as ~20000000 (to plan the disk space)")
    size = _number(row["bytes"])
    counts = {}
    for part in row["counts"].split(",") if row["counts"] != UNKNOWN else ():
        key, _, value = part.partition("=")
        counts[key] = _number(value)
    return Source(
        *(row["name"], row["file"], row["url"]),
        size=size.number,
        size_known=size.exact,
        checksum=checksum,
        counts=counts,
        licence=row["licence"],
        note=row["note"],
    )


def _number(text: str) -> Count:
    digits = text[len(ESTIMATE) :] if text.startswith(ESTIMATE) else text
    if not digits.isdecimal():
        raise ValueError(f"{text}: not a number")
    return Count(int(digits), exact=digits == text)


def with_local_files(table: dict[str, Source], given: list[str]) -> dict[str, Source]:
    """The table with local files, given as NAME=PATH, in place of downloads.

    Raises:
        DataError: a name that is not in the table, or no such file.
    """
    changed = dict(table)
    for word in given:
        name, sign, path = word.partition("=")
        if not sign or name not in table:
            raise textio.DataError(f"--local {word}: give NAME=PATH with a NAME of the table: {', '.join(table)}")
        if not Path(path).is_file():
            raise textio.DataError(f"--local {word}: {path}: no such file")
        changed[name] = replace(table[name], local=Path(path))
    return changed
