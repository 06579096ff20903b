"""Reading and writing text files: the parts every data-prep step shares.

Text is UTF-8, one sentence a line; files ending in .xz or .gz are read through decompression. A file appears under its
name only when it is complete, so a killed step leaves nothing that looks finished.
"""

from __future__ import annotations

import gzip
import lzma
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TextIO, cast

from lmfusion.errors import NO_SPACE, InputError, check_name, file_of, why_no_file
from lmfusion.text.codes import conversion

BAD_COMPRESSION = (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError)
PARTIAL = ".lmfusion.partial"
GZIP, XZ = b"\x1f\x8b", b"\xfd7zXZ\x00"
"""First bytes of compressed files."""
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
"""First bytes of a file in that encoding, its mark."""
LONGEST_LINE = 1 << 26
"""Bytes."""


class DataError(InputError):
    """Report something a person has to fix: the message names the file and the fix."""


def open_binary(path: Path) -> IO[bytes]:
    """Open a plain file, or one that is compressed by xz or gzip, whatever its name, for reading.

    Raises:
        DataError: there is no such file, or it is empty and its name says that it is compressed.
    """
    if not path.is_file():
        raise DataError(f"{path}: {why_no_file(path)}")
    if path.suffix in (".xz", ".gz") and not path.stat().st_size:
        raise DataError(f"{path}: is empty, which no compressed file is. Fetch it again.")
    with path.open("rb") as stream:
        head = stream.read(len(XZ))
    if head.startswith(XZ) or (path.suffix == ".xz" and not head.startswith(GZIP)):
        return lzma.open(path, "rb")
    if head.startswith(GZIP) or path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def raw_lines(path: Path, stream: IO[bytes]) -> Iterator[bytes]:
    """Yield a stream's lines with their ends.

    Raises:
        DataError: a line is longer than any text's, as a small compressed file can hold one that fills the memory.
    """
    for number, raw in enumerate(iter(partial(stream.readline, LONGEST_LINE), b""), start=1):
        if len(raw) == LONGEST_LINE and not raw.endswith(b"\n"):
            raise DataError(
                f"{path}, line {number}: is longer than {LONGEST_LINE >> 20} MiB. Is it text, a sentence a line?"
            )
        yield raw


def is_gzip(path: Path) -> bool:
    """Return whether a file is compressed by gzip, whatever its name."""
    with path.open("rb") as stream:
        return stream.read(len(GZIP)) == GZIP


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their line ends; only a line feed ends a line.

    A byte order mark at the beginning is no part of the text.

    Raises:
        DataError: missing file, bad compression, or bytes that are not UTF-8 (with the line's number).
    """
    number = 0
    try:
        with open_binary(path) as stream:
            for number, raw in enumerate(raw_lines(path, stream), start=1):
                text = raw.decode("utf-8").rstrip("\r\n")
                yield text.removeprefix("\ufeff") if number == 1 else text
    except UnicodeDecodeError as error:
        if number == 1 and error.object.startswith(UTF_16):
            raise DataError(f"{path}: UTF-16, not UTF-8. Convert the file: `iconv -f UTF-16 -t UTF-8`.") from error
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at position "
            f"{error.start + 1} of the line). Take the line out, or {conversion(path)}."
        ) from error
    except BAD_COMPRESSION as error:
        raise cut(path, number, error) from error


def count_lines(path: Path) -> int:
    """Return the number of lines of a file, a last line without line feed included.

    Raises:
        DataError: missing file or bad compression.
    """
    count, last = 0, b"\n"
    try:
        with open_binary(path) as stream:
            while block := stream.read(1 << 20):
                count += block.count(b"\n")
                last = block[-1:]
    except BAD_COMPRESSION as error:
        raise cut(path, count, error) from error
    return count + (last != b"\n")


def cut(path: Path, lines: int, error: Exception) -> DataError:
    """Return the error for a compressed file that ends early or is damaged."""
    return DataError(f"{path}: cannot be decompressed after line {lines} ({error}). Is it complete? Fetch it again.")


def refuse_overwriting(output: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output that would take the place of what it is made from.

    Raises:
        DataError: it would.
    """
    if output.resolve() in {path.resolve() for path in inputs}:
        raise DataError(f"{output}: is one of the files to be read. Give another name.")


def partial_name(path: Path) -> Path:
    """Return the name a file or folder has while it is being made; an :class:`InputError` if the path has none."""
    check_name(path)
    return path.with_name(path.name + PARTIAL)


def copy_file(source: Path, target: Path) -> None:
    """Copy a file; it gets its name when it is complete.

    Raises:
        DataError: there is no such file.
    """
    if not source.is_file():
        raise DataError(f"{source}: {why_no_file(source)}")
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, partial_name(target))
    partial_name(target).replace(target)


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a text file to write; it gets its name `path` only if the block ends without an exception."""
    partial = partial_name(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.replace(path)
    except OSError as error:
        error.filename = error.filename or str(path)
        partial.unlink(missing_ok=True)
        raise
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def run_command(main: Callable[[], None]) -> int:
    """Run `main`; turn what a person can fix into one line on stderr and exit status 1."""
    try:
        main()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; run the same command again to resume.", file=sys.stderr)
        return 130
    return 0


def describe_os_error(error: OSError) -> str:
    """Say what the system refused, for which file, and what to do."""
    name = file_of(error) or "the output"
    if error.errno in NO_SPACE:
        return (
            f"{name}: {error.strerror}. Free some space or choose another output folder, then run "
            f"the same command again; finished steps are kept."
        )
    return f"{name}: {error.strerror or error}"
