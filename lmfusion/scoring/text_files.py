"""Text files with one sentence per line, read strictly: a silently skipped line would shift all lines behind it."""

from __future__ import annotations

from pathlib import Path
from typing import Union

from lmfusion.errors import UserError

PathLike = Union[str, Path]


def read_lines(path: PathLike) -> list[str]:
    """The file's lines without their line ends. Only "\\n" and "\\r\\n" end a line, and a byte order mark is dropped.

    Raises:
        UserError: the file is missing, unreadable or empty, or is not UTF-8 (the message names the first such line).
    """
    data = _read_bytes(path)
    if not data:
        raise UserError(f"{path} is empty. Was the step that writes it interrupted? Run it again.")
    raw_lines = data.removeprefix(b"\xef\xbb\xbf").split(b"\n")
    if not raw_lines[-1]:
        raw_lines.pop()  # what follows the last line end
    lines = []
    for number, raw in enumerate(raw_lines, start=1):
        try:
            lines.append(raw.decode("utf-8").removesuffix("\r"))
        except UnicodeDecodeError as error:
            raise UserError(
                f"{path}, line {number}, is not UTF-8 text (byte 0x{raw[error.start]:02x} at position {error.start}). "
                f"Convert the file first, for example: iconv -f LATIN1 -t UTF-8 {path}"
            ) from error
    return lines


def _read_bytes(path: PathLike) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise UserError(f"There is no file {path}. Check the path.") from error
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder, and a text file is needed. Name the file in it.") from error
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from error
