"""Text files with one sentence per line, read strictly: a silently skipped line would shift all lines behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Union

from lmfusion.errors import InputError

PathLike = Union[str, Path]
BOM = b"\xef\xbb\xbf"
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of a file in that encoding, its mark."""
COMPRESSED = {b"\x1f\x8b": ("gzip", "gzip -dc"), b"\xfd7zXZ\x00": ("xz", "xz -dc")}
"""First bytes of compressed files -> by what, and the command that unpacks one."""


def read_lines(path: PathLike) -> list[str]:
    """Return the file's lines without their line ends; errors are those of :func:`each_line`."""
    return list(each_line(path))


def each_line(path: PathLike) -> Iterator[str]:
    """Iterate over the file's lines without their line ends.

    Only "\\n" and "\\r\\n" end a line, and a byte order mark is dropped.

    Raises:
        InputError: the file is missing, unreadable or empty, or is not UTF-8 (the message names the first such line).
    """
    number = 0
    for number, raw in enumerate(_raw_lines(path), start=1):
        raw = raw.removeprefix(BOM) if number == 1 else raw
        try:
            line = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise InputError(_why_no_text(path, number, raw, error)) from error
        if line:  # a byte order mark alone is no line
            yield line.removesuffix("\n").removesuffix("\r")
    if not number:
        raise InputError(f"{path} is empty. Was the step that writes it interrupted? Run it again.")


def _why_no_text(path: PathLike, number: int, raw: bytes, error: UnicodeDecodeError) -> str:
    """Return what a line is that is no UTF-8, and the command that makes text of its file."""
    packed = next((how for magic, how in COMPRESSED.items() if number == 1 and raw.startswith(magic)), None)
    if packed is not None:
        return f"{path} is compressed by {packed[0]}. Unpack it first: {packed[1]} < {path}"
    if number == 1 and raw.startswith(UTF_16):
        return f"{path} is UTF-16. Convert it first: iconv -f UTF-16 -t UTF-8 {path}"
    return (
        f"{path}, line {number}, is not UTF-8 text (byte 0x{raw[error.start]:02x} at position {error.start}). "
        f"Convert it from its own encoding first: iconv -f ENCODING -t UTF-8 {path}"
    )


def _raw_lines(path: PathLike) -> Iterator[bytes]:
    try:
        with Path(path).open("rb") as stream:
            yield from stream
    except FileNotFoundError as error:
        raise InputError(f"There is no file {path}. Check the path.") from error
    except IsADirectoryError as error:
        raise InputError(f"{path} is a folder, and a text file is needed. Name the file in it.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from error
