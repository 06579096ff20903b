"""Debian packages: the table of those with text, their download by apt, and the files inside. Nothing is installed.

A .deb is an `ar` archive of control.tar.* and data.tar.* (deb(5)). Both are read in memory: nothing is unpacked onto
the disk, so a package can write nowhere and run nothing.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import hashlib
import io
import lzma
import re
import shutil
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tqdm import tqdm  # type: ignore[import-untyped]

from .entries import stanzas
from .errors import CorpusError

COLUMNS = ("package", "source", "kinds", "languages", "version", "sha256", "licence")
KINDS = ("man", "html", "mallard", "catalog")
DAMAGED = (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, UnicodeDecodeError, ValueError)


@dataclass(frozen=True)
class Listed:
    """One row of the table."""

    package: str
    source: str  # the source package, which decides the family
    kinds: tuple[str, ...]
    languages: tuple[str, ...]  # ("de",), ("en", "de"); ("*",): English and translations side by side
    version: str
    sha256: str
    licence: str

    def speaks(self, lang: str) -> bool:
        """Whether text in this language may be inside."""
        return "*" in self.languages or lang in self.languages


def read_table(path: Path) -> list[Listed]:
    """The rows of the table, without its comments.

    Raises:
        CorpusError: a row is not what COLUMNS says.
    """
    rows: list[Listed] = []
    with path.open(encoding="utf-8", newline="") as stream:
        lines = ((number, line) for number, line in enumerate(stream, start=1) if not line.startswith("#"))
        for number, line in lines:
            cells = next(csv.reader([line], delimiter="\t", quoting=csv.QUOTE_NONE))
            if tuple(cells) == COLUMNS:
                continue
            kinds = cells[2].split(",") if len(cells) == len(COLUMNS) else []
            if not kinds or not set(kinds) <= set(KINDS) or not re.fullmatch(r"[0-9a-f]{64}", cells[5]):
                raise CorpusError(f"{path}, line {number}: not a row of {', '.join(COLUMNS)}, parted by tabs")
            rows.append(Listed(*cells[:2], tuple(kinds), tuple(cells[3].split(",")), *cells[4:]))
    return rows


def download(rows: list[Listed], folder: Path) -> None:
    """Let apt fetch the packages into `folder`; it checks them against the archive's signed index.

    Raises:
        CorpusError: apt is missing, or could not.
    """
    if shutil.which("apt-get") is None:
        raise CorpusError("apt-get is not on this machine: fetch the packages elsewhere and give them by --packages")
    for row in tqdm(rows, desc="fetching", unit=" packages", disable=None):
        # apt's download user cannot write into a private folder; the packages are only read here.
        command = ["apt-get", "download", "-q", "-o", "APT::Sandbox::User=", row.package]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            said = "; ".join(line for line in done.stderr.splitlines() if line.startswith("E:")) or "no message"
            raise CorpusError(f"apt-get could not fetch {row.package} ({said}). Run `apt-get update`, then try again.")


@dataclass(frozen=True)
class Deb:
    """A package file that was found to be the one of the table."""

    path: Path
    listed: Listed
    version: str
    sha256: str

    def files(self) -> Iterator[tuple[str, bytes]]:
        """Path within the package and content, .gz and .bz2 undone, of every file of the row's kinds.

        Raises:
            CorpusError: the package is damaged.
        """
        try:
            with _open_tar(self.path, "data") as tar:
                for member in tar:
                    name = member.name.removeprefix("./")
                    if member.isfile() and any(PATHS[kind].search(name) for kind in self.listed.kinds):
                        stream = tar.extractfile(member)
                        assert stream is not None  # a regular file has content
                        yield name, _plain(name, stream.read())
        except DAMAGED as error:
            raise CorpusError(f"{self.path.name} is damaged ({error}): fetch it again") from error


PATHS = {
    "man": re.compile(r"^usr/share/man/(?:[\w@.]+/)?man\d/[^/]+\.gz$"),
    "html": re.compile(r"\.x?html(?:\.gz)?$|/index\.cache\.bz2$"),
    "mallard": re.compile(r"\.page$"),
    "catalog": re.compile(r"\.mo$"),
}


def find(rows: list[Listed], folder: Path, any_version: bool) -> list[Deb]:
    """The package files in `folder`, all of them checked before any is used.

    Raises:
        CorpusError: names each package that is missing, damaged or not the one of the table.
    """
    found: list[Deb] = []
    problems: list[str] = []
    for row in rows:
        paths = sorted(folder.glob(f"{row.package}_*.deb"))
        if len(paths) != 1:
            problems.append(f"{row.package}: {'no' if not paths else 'more than one'} {row.package}_*.deb in {folder}")
            continue
        try:
            deb = _open(paths[0], row)
        except CorpusError as error:
            problems.append(f"{row.package}: {error}")
            continue
        if deb.version == row.version and deb.sha256 != row.sha256:
            problems.append(f"{row.package}: changed or truncated: not the SHA-256 of {row.version} in the table")
        elif deb.version != row.version and not any_version:
            wrong = f"is version {deb.version}, not {row.version}"
            problems.append(f"{row.package}: {wrong}; if older, run apt-get update; --any-version takes it")
        found.append(deb)
    if problems:
        raise CorpusError("packages refused:\n  " + "\n  ".join(problems))
    return found


def _open(path: Path, row: Listed) -> Deb:
    try:
        with _open_tar(path, "control") as tar:
            stream = tar.extractfile("./control")
            assert stream is not None
            fields = next(stanzas(stream.read().decode("utf-8")))
        package, version = fields["Package"][0], fields["Version"][0]
    except (*DAMAGED, KeyError, StopIteration) as error:
        raise CorpusError(f"{path.name} is damaged ({error}): fetch it again") from error
    source = fields.get("Source", [package])[0].split(" ")[0]
    if (package, source) != (row.package, row.source):
        raise CorpusError(f"{path.name} holds the package {package} of source {source}")
    return Deb(path, row, version, hashlib.sha256(path.read_bytes()).hexdigest())


def _open_tar(path: Path, part: str) -> tarfile.TarFile:
    for name, data in _members(path):
        if name.startswith(f"{part}.tar"):
            if name.endswith(".zst"):
                raise ValueError("packed with zstd, as Ubuntu does: give Debian's package")
            return tarfile.open(fileobj=io.BytesIO(data))
    raise ValueError(f"no {part}.tar inside")


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each member of an `ar` archive: a header of 60 bytes, content at even offsets."""
    with path.open("rb") as stream:
        if stream.read(8) != b"!<arch>\n":
            raise ValueError("not a .deb file")
        while header := stream.read(60):
            size = int(header[48:58]) if len(header) == 60 else 0
            data = stream.read(size)
            if len(header) < 60 or len(data) < size:
                raise EOFError("it ends in the middle")
            yield header[:16].decode("ascii").strip().rstrip("/"), data
            stream.read(size % 2)


def _plain(name: str, data: bytes) -> bytes:
    if name.endswith(".gz"):
        return gzip.decompress(data)
    return bz2.decompress(data) if name.endswith(".bz2") else data
