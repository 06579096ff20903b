"""Read pairs and plain text from the files that people have: plain text, TSV, JSONL, TMX, compressed or not."""

from __future__ import annotations

import gzip
import json
import lzma
import zipfile
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import IO, Any, cast

from lmfusion.text.textio import BAD_COMPRESSION, DataError

Pair = tuple[str, str]
_MARKS = {
    b"\xff\xfe\x00\x00": "UTF-32LE",
    b"\x00\x00\xfe\xff": "UTF-32BE",
    b"\xff\xfe": "UTF-16LE",
    b"\xfe\xff": "UTF-16BE",
}
_OTHERS = {
    b"%PDF": "a PDF",
    b"PK\x03\x04": "a zip archive (or a document of an office program)",
    b"\x7fELF": "a program",
}
_XML_LANG = "{http://www.w3.org/XML/1998/namespace}lang"


def lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, white space made single spaces; gzip and xz are known by their first bytes.

    Raises:
        DataError: no such file, another encoding or kind of file (named, with the fix), or bad compression.
    """
    number = 0
    with _opened(path) as stream:
        try:
            for number, raw in enumerate(stream, start=1):
                yield _text(path, number, raw)
        except BAD_COMPRESSION as error:
            raise DataError(f"{path}: cannot be decompressed after line {number} ({error}). Fetch it again.") from error


def _text(path: Path, number: int, raw: bytes) -> str:
    if b"\x00" in raw:
        raise DataError(f"{path}, line {number}: has a zero byte, which no text has. Is it a text file, in UTF-8?")
    bare = raw.rstrip(b"\r\n")
    if bare.count(b"\r") > 1:
        raise DataError(
            f"{path}, line {number}: {bare.count(13):,} lines end in a carriage return alone, as on old Macs: "
            f"tr '\\r' '\\n' < {path.name} > converted.txt"
        )
    try:
        text = bare.decode("utf-8")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{bare[error.start]:02x}). Convert it, e.g. "
            f"iconv -f ISO-8859-1 -t UTF-8 {path.name} > converted.txt"
        ) from error
    return " ".join((text.removeprefix("\ufeff") if number == 1 else text).split())


def _opened(path: Path) -> IO[bytes]:
    """Open a file through its decompression, if it looks like text."""
    if not path.is_file():
        raise DataError(f"{path}: {'is a folder' if path.is_dir() else 'no such file'}.")
    with path.open("rb") as stream:
        head = stream.read(6)
    if not head:
        raise DataError(f"{path}: is empty.")
    if head.startswith(b"\x1f\x8b"):
        return cast(IO[bytes], gzip.open(path))
    if head.startswith(b"\xfd7zXZ\x00"):
        return lzma.open(path)
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            raise DataError(f"{path}: is {name}. Convert it: iconv -f {name[:6]} -t UTF-8 {path.name} > converted.txt")
    for mark, name in _OTHERS.items():
        if head.startswith(mark) and (mark[:2] != b"PK" or zipfile.is_zipfile(path)):
            raise DataError(f"{path}: is {name}, not text. Save it as plain text in UTF-8, one sentence a line.")
    return path.open("rb")


def parallel(source: Path, target: Path) -> Iterator[Pair]:
    """Yield the pairs of two files that belong together line by line.

    Raises:
        DataError: see :func:`lines`; or their numbers of lines differ.
    """
    counts, missing = [0, 0], object()
    for pair in zip_longest(lines(source), lines(target), fillvalue=missing):
        for side, text in enumerate(pair):
            counts[side] += text is not missing
        if counts[0] == counts[1]:
            yield cast(Pair, pair)
    if counts[0] != counts[1]:
        raise DataError(
            f"{source} has {counts[0]:,} lines and {target} {counts[1]:,}: they must be parallel. Is one "
            f"cut short, or does a sentence have a line break in it?"
        )


def tsv(path: Path, columns: Sequence[str] | None) -> Iterator[Pair]:
    """Yield pairs from two columns of tab-separated text.

    Args:
        path: of the file.
        columns: names in its first line, or numbers from 1; None: the first two columns, and no line of names.

    Raises:
        DataError: a column is not there, in the file or in a line.
    """
    rows = lines_with_tabs(path)
    places = [0, 1]
    if columns and all(name.isdecimal() for name in columns):
        places = [int(name) - 1 for name in columns]
    elif columns:
        header = next(rows, [])
        if missing := [name for name in columns if name not in header]:
            raise DataError(f"{path}: has no column {missing[0]!r}. Its first line names {', '.join(header)}.")
        places = [header.index(name) for name in columns]
    for number, row in enumerate(rows, start=1):
        if len(row) <= max(places):
            raise DataError(f"{path}, row {number}: has {len(row)} columns, and {max(places) + 1} are needed.")
        yield row[places[0]], row[places[1]]


def lines_with_tabs(path: Path) -> Iterator[list[str]]:
    """Yield the cells of each line of tab-separated text, without quoting.

    Raises:
        DataError: see :func:`lines`.
    """
    with _opened(path) as stream:
        for number, raw in enumerate(stream, start=1):
            yield [_text(path, number, cell) for cell in raw.rstrip(b"\r\n").split(b"\t")]


def jsonl(path: Path, keys: Sequence[str]) -> Iterator[Pair]:
    """Yield pairs from two keys of the JSON objects that stand one a line.

    Args:
        path: of the file.
        keys: two names; dots lead into objects within.

    Raises:
        DataError: a line is no JSON object, or a key of it is missing or no text.
    """
    for number, line in enumerate(lines(path), start=1):
        if not line:
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise DataError(f"{path}, line {number}: is no JSON ({error}). Each line must be one object.") from error
        source, target = (_value(path, number, found, key) for key in keys)
        yield source, target


def _value(path: Path, number: int, record: Any, key: str) -> str:
    value = record
    for part in key.split("."):
        if not isinstance(value, dict) or part not in value:
            names = ", ".join(record) if isinstance(record, dict) else "none"
            raise DataError(f"{path}, line {number}: has no {key!r}; its keys are {names}. Name two by --fields.")
        value = value[part]
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        value = " ".join(value)
    if not isinstance(value, str):
        raise DataError(f"{path}, line {number}: {key} is no text but a {type(value).__name__}.")
    return " ".join(value.split())


def tmx(path: Path, languages: tuple[str, str]) -> Iterator[Pair]:
    """Yield the pairs of a translation memory in these languages; units that lack one are left out.

    Args:
        path: of the file.
        languages: codes such as ``en``; ``en-GB`` in the file counts as ``en``.

    Raises:
        DataError: it is no well-formed XML, declares entities, or has no unit in both languages.
    """
    from lxml import etree

    found, seen = 0, set()
    options = {"resolve_entities": False, "no_network": True, "load_dtd": False, "huge_tree": False}
    try:
        with _opened(path) as stream:
            for _, unit in etree.iterparse(stream, events=("end",), tag="tu", **options):
                if unit.getroottree().docinfo.internalDTD is not None and _declares(unit):
                    raise DataError(f"{path}: declares entities, which no translation memory needs. Take them out.")
                texts = {}
                for variant in unit.iterfind("tuv"):
                    code = (variant.get(_XML_LANG) or variant.get("lang") or "").lower()
                    segment = variant.find("seg")
                    text = "" if segment is None else "".join(segment.itertext())
                    seen.add(code)
                    texts.update({want: " ".join(text.split()) for want in languages if _is(code, want)})
                if len(texts) == 2:
                    found += 1
                    yield texts[languages[0]], texts[languages[1]]
                unit.clear()
    except etree.XMLSyntaxError as error:
        raise DataError(f"{path}: is no well-formed TMX ({error}).") from error
    if not found:
        raise DataError(
            f"{path}: has no unit in {' and '.join(languages)}; its languages are {', '.join(sorted(seen))}."
        )


def _declares(unit: Any) -> bool:
    return any(True for _ in unit.getroottree().docinfo.internalDTD.iterentities())


def _is(code: str, wanted: str) -> bool:
    return code == wanted.lower() or code.replace("_", "-").split("-")[0] == wanted.lower()
