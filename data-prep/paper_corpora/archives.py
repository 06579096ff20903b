"""Members of .tgz and .zip archives, streamed."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from lmfusion.text import textio

DAMAGE = (tarfile.TarError, zipfile.BadZipFile, gzip.BadGzipFile, zlib.error, EOFError)
BLOCK = 1 << 20


def members(archive: Path, wanted: set[str] | None = None) -> Iterator[tuple[str, IO[bytes]]]:
    """Names and streams of the files in an archive, in its order; read each stream before asking for the next.

    Args:
        wanted: only these, and an error if one is not there; None: all.

    Raises:
        DataError: a wanted file is not in the archive; see also `damage_named`.
    """
    found = set()
    for name, stream in _zip_members(archive) if archive.suffix == ".zip" else _tar_members(archive):
        if wanted is None or name in wanted:
            found.add(name)
            yield name, stream
    missing = sorted((wanted or set()) - found)
    if missing:
        raise textio.DataError(f"{archive}: {missing[0]} is not in it. Is it another release of the corpus?")


@contextmanager
def damage_named(archive: Path) -> Iterator[None]:
    """Around reading an archive: damage becomes one error that names it.

    Raises:
        DataError: the archive is damaged.
    """
    try:
        yield
    except DAMAGE as error:
        raise textio.DataError(f"{archive}: cannot be unpacked ({error}). Delete it to fetch it again.") from error


def read_text(stream: IO[bytes], name: str) -> str:
    """The whole of a small member.

    Raises:
        DataError: not UTF-8.
    """
    try:
        return stream.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise textio.DataError(f"{name}: not UTF-8 ({error})") from error


def _tar_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    opener = gzip.open if textio.is_gzip(archive) else Path.open
    with opener(archive, "rb") as file, tarfile.open(fileobj=file, mode="r|*") as tar:
        for info in tar:
            stream = tar.extractfile(info) if info.isfile() else None
            if stream is not None:
                yield info.name.removeprefix("./"), stream
        while file.read(BLOCK):  # to the check sum, which tarfile does not look at
            pass


def _zip_members(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(archive) as zipped:
        for name in zipped.namelist():
            with zipped.open(name) as stream:
                yield name, stream
