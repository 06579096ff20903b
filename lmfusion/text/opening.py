"""Reading text files as people have them: plain or compressed whatever their names; what is no UTF-8 text is named."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, cast

from lmfusion.errors import why_no_file
from lmfusion.text.codes import conversion
from lmfusion.text.textio import BAD_COMPRESSION, GZIP, XZ, DataError, cut, raw_lines

ZIP, PDF = b"PK\x03\x04", b"%PDF"
BZIP2, ZSTD = b"BZh", b"\x28\xb5\x2f\xfd"
BLOCK = 1 << 16
NO_TEXT = {
    PDF: ("a PDF", "`pdftotext FILE`"),
    BZIP2: ("compressed by bzip2", "`bunzip2 FILE`"),
    ZSTD: ("compressed by zstd", "`unzstd FILE`"),
    b"7z\xbc\xaf": ("a 7z archive", "`7z x FILE`"),
    b"\xd0\xcf\x11\xe0": ("an old Word or Excel file", "save it as plain text in UTF-8"),
    b"{\\rtf": ("a rich-text file", "save it as plain text in UTF-8"),
}
STREAMED = {GZIP: "gzip", XZ: "xz", BZIP2: "bzip2", ZSTD: "zstd"}
"""Programs that decompress a stream, by its first bytes."""
MARKS = {  # UTF-32's little-endian mark begins with UTF-16's, so it comes first
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def open_any(path: Path) -> IO[bytes]:
    """Open a file for reading its bytes, decompressed if its first bytes are gzip's or xz's, whatever its name.

    Raises:
        DataError: the file is missing or empty, or is an archive or a document, not text.
    """
    if not path.is_file():
        raise DataError(f"{path}: {why_no_file(path)}. Give the path of a regular file.")
    with path.open("rb") as stream:
        head = stream.read(8)
    if not head:
        raise DataError(f"{path}: empty file. It needs one sentence a line.")
    check_kind(path, head)
    if head.startswith(GZIP):
        return cast(IO[bytes], gzip.open(path, "rb"))
    if head.startswith(XZ):
        return lzma.open(path, "rb")
    return path.open("rb")


def check_kind(path: Path, head: bytes) -> None:
    """Refuse an archive or a document by a file's first bytes.

    Raises:
        DataError: it is one, of a kind that is not read.
    """
    if head.startswith(ZIP):
        raise DataError(f"{path}: {_zip_kind(path)}, not text. Give the text itself, in UTF-8, one sentence a line.")
    for magic, (kind, fix) in NO_TEXT.items():
        if head.startswith(magic):
            raise DataError(f"{path}: {kind}, not text: {fix.replace('FILE', path.name)}, and give the result.")


def _zip_kind(path: Path) -> str:
    try:
        with zipfile.ZipFile(path) as archive:
            names = set(archive.namelist())
    except zipfile.BadZipFile:
        return "a damaged zip archive"
    kinds = {
        "word/document.xml": "a Word document (docx)",
        "xl/workbook.xml": "an Excel sheet (xlsx)",
        "content.xml": "an OpenDocument file",
    }
    return next((kind for name, kind in kinds.items() if name in names), "a zip archive")


def read_text(path: Path, languages: Iterable[str] = ()) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file, plain or compressed; only a line feed ends a line.

    A byte order mark at the beginning is no text.

    Args:
        path: the file.
        languages: codes of those that it is in, by which its encoding is guessed; none where its ending says it.

    Raises:
        DataError: the file cannot be read as UTF-8 text; the message names file, line and fix.
    """
    number = 0
    try:
        with open_any(path) as stream:
            check_head(path, stream.read(BLOCK))
            stream.seek(0)
            for number, raw in enumerate(raw_lines(path, stream), start=1):
                if b"\x00" in raw:
                    raise DataError(f"{path}, line {number}: has a NUL byte, which no text has. Is it a binary file?")
                text = raw.decode("utf-8").rstrip("\r\n")
                yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at position {error.start + 1} "
            f"of the line). Take the line out, or {conversion(path, languages)}."
        ) from error
    except BAD_COMPRESSION as error:
        raise cut(path, number, error) from error


def check_head(path: Path, head: bytes) -> None:
    """Refuse text in another encoding or with other line ends, by the file's first bytes.

    Raises:
        DataError: it is UTF-16 or UTF-32, or its lines end in carriage returns alone.
    """
    for mark, encoding in MARKS.items():
        if head.startswith(mark):
            raise DataError(_convert(path, f"{encoding} (by its first bytes)", encoding))
    pairs = len(head) // 2
    zeros = [head[start::2].count(0) for start in (0, 1)]
    for order, here, there in (("BE", zeros[0], zeros[1]), ("LE", zeros[1], zeros[0])):
        if pairs > 1 and here > 0.5 * pairs and not there:
            raise DataError(_convert(path, "UTF-16 without a mark (every other byte is NUL)", f"UTF-16{order}"))
    if b"\r" in head[:-1] and b"\n" not in head:
        raise DataError(
            f"{path}: its lines end in carriage returns alone (old-Mac line ends). Convert it: "
            f"`tr '\\r' '\\n' < {path.name} > FILE`."
        )


def _convert(path: Path, found: str, encoding: str) -> str:
    return f"{path}: {found}, not UTF-8. Convert it: `iconv -f {encoding} -t UTF-8 {path.name} > FILE`."


def clean(text: str) -> str:
    """Return a line with every kind of white space made one space, and none at its ends."""
    return " ".join(text.split())
