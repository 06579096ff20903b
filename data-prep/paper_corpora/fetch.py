"""Downloads that resume where they stopped, and are used only after their size and checksum have been verified."""

from __future__ import annotations

import hashlib
import json
import shutil
import ssl
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException
from pathlib import Path
from typing import IO, Any

from tqdm import tqdm  # type: ignore[import-untyped]

from lmfusion.text import textio
from lmfusion.text.progress import LOG_LINE
from lmfusion.text.record import read_json
from paper_corpora.sources import Source

BLOCK = 1 << 20
TIMEOUT = 60
PARTIAL = ".part"
RANGE_NOT_SATISFIABLE = 416
PARTIAL_CONTENT = 206


class Downloads:
    """The folder of downloads, and what was verified of each file in it (verified.json)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.record = folder / "verified.json"
        self.verified: dict[str, dict[str, Any]] = {}
        if self.record.is_file():
            self.verified = read_json(self.record, "every download is verified again")

    def path(self, source: Source) -> Path:
        """Where the file is, or will be."""
        return source.local or self.folder / source.file

    def missing(self, source: Source) -> bool:
        """Whether it has to be fetched."""
        return not self.path(source).is_file()

    def get(self, source: Source) -> Path:
        """The verified file, fetched if need be.

        Raises:
            DataError: it cannot be fetched, or is not what the table says, or has changed since it was used.
        """
        path = self.path(source)
        if self.missing(source):
            partial = path.with_name(path.name + PARTIAL)
            download(source, partial)
            digests = self._verify(source, partial)
            partial.replace(path)
            self._remember(source, path, digests)
        elif not self._known(source, path):
            self._remember(source, path, self._verify(source, path))
        return path

    def check_unchanged(self, source: Source) -> None:
        """Check a file that finished stages were made from, if it is still there.

        Raises:
            DataError: it is not the file that was used.
        """
        path = self.path(source)
        if source.name not in self.verified or not path.is_file() or self._known(source, path):
            return
        self._remember(source, path, self._verify(source, path))

    def _known(self, source: Source, path: Path) -> bool:
        before = self.verified.get(source.name)
        return before is not None and before["stat"] == _stat(path)

    def _verify(self, source: Source, path: Path) -> dict[str, str]:
        size = path.stat().st_size
        advice = f"delete {path} to fetch it again, or give another file by --local {source.name}=PATH"
        if source.size_known and size < source.size:
            raise textio.DataError(
                f"{source.name}: {path} has {size:,} of {source.size:,} bytes. Run the same command again to resume; "
                f"if it stays so, {advice}."
            )
        if source.size_known and size > source.size:
            raise textio.DataError(f"{source.name}: {path} has {size:,} bytes instead of {source.size:,}; {advice}.")
        if source.local is None and source.url.endswith(".gz") and not textio.is_gzip(path):
            raise textio.DataError(
                f"{source.name}: what came from {source.url} is not compressed, so it is not that file, perhaps a page "
                f"that a server or proxy gave instead; {advice}."
            )
        digests = _digests(path, source.checksum)
        if source.checksum is not None:
            algorithm, _, expected = source.checksum.partition(":")
            if digests[algorithm] != expected:
                raise textio.DataError(
                    f"{source.name}: {path} is not the published file ({algorithm} {digests[algorithm]} instead of "
                    f"{expected}); {advice}."
                )
        before = self.verified.get(source.name)
        if before is not None and before["sha256"] != digests["sha256"]:
            raise textio.DataError(
                f"{source.name}: {path} has changed since it was used (sha256 {digests['sha256']}, was "
                f"{before['sha256']}). Put the former file back, or choose another --out."
            )
        return digests

    def _remember(self, source: Source, path: Path, digests: dict[str, str]) -> None:
        self.verified[source.name] = {**digests, "url": source.url, "stat": _stat(path)}
        with textio.writing(self.record) as stream:
            json.dump(self.verified, stream, indent=2, sort_keys=True)
            stream.write("\n")


def _stat(path: Path) -> list[int]:
    stat = path.stat()
    return [stat.st_size, stat.st_mtime_ns]


def _digests(path: Path, checksum: str | None) -> dict[str, str]:
    """SHA-256, and what `checksum` names."""
    names = {"sha256", *((checksum.partition(":")[0],) if checksum else ())}
    digests = {name: hashlib.new(name, usedforsecurity=False) for name in names}
    with path.open("rb") as stream, progress(path.stat().st_size, f"verifying {path.name}") as bar:
        while block := stream.read(BLOCK):
            for digest in digests.values():
                digest.update(block)
            bar.update(len(block))
    return {name: digest.hexdigest() for name, digest in digests.items()}


def download(source: Source, partial: Path) -> None:
    """Fetch a source into `partial`, resuming where that file ends.

    Raises:
        DataError: the address cannot be read, or the connection broke; what came is kept.
    """
    partial.parent.mkdir(parents=True, exist_ok=True)
    start = partial.stat().st_size if partial.exists() else 0
    total: int | None = None
    try:
        stream, start, total = _open(source.url, start)
        with stream, partial.open("r+b" if start else "wb") as target:
            target.seek(start)
            target.truncate()
            with progress(total or source.size, f"fetching {source.file}", start) as bar:
                for block in _blocks(stream):
                    target.write(block)
                    bar.update(len(block))
    except (urllib.error.URLError, ssl.SSLError, TimeoutError, ConnectionError, HTTPException) as error:
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        raise textio.DataError(
            f"{source.name}: {source.url} cannot be fetched ({reason}). Run the same command again to resume, or fetch "
            f"it by other means and give it by --local {source.name}=PATH."
        ) from error
    size = partial.stat().st_size
    if total is not None and size < total:
        raise textio.DataError(
            f"{source.name}: the connection broke after {size:,} of {total:,} bytes of {source.url}. Run the same "
            f"command again to resume."
        )


def _open(url: str, start: int) -> tuple[IO[bytes], int, int | None]:
    """A stream of the address from byte `start` on; where it really starts; and the whole's size where known."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme == "file":
        path = Path(urllib.request.url2pathname(parts.path))
        if not path.is_file():
            raise urllib.error.URLError("no such file")
        stream = path.open("rb")
        stream.seek(start)
        return stream, start, path.stat().st_size
    request = urllib.request.Request(url, headers={"Range": f"bytes={start}-"} if start else {})
    try:
        response = urllib.request.urlopen(request, timeout=TIMEOUT)
    except urllib.error.HTTPError as error:
        if error.code == RANGE_NOT_SATISFIABLE and start:  # there is no more of it
            return error, start, None  # type: ignore[return-value]
        raise
    start = start if response.status == PARTIAL_CONTENT else 0
    length = response.headers.get("Content-Length")
    return response, start, start + int(length) if length else None


def _blocks(stream: IO[bytes]) -> Iterator[bytes]:
    if isinstance(stream, urllib.error.HTTPError):
        return
    while block := stream.read(BLOCK):
        yield block


def progress(total: int, label: str, initial: int = 0) -> tqdm:
    """A bar in bytes with the time left; in a log file a line every ten seconds at most."""
    style = {"dynamic_ncols": True, "leave": False} if sys.stderr.isatty() else LOG_LINE
    return tqdm(total=total, initial=initial, desc=label, unit="B", unit_scale=True, unit_divisor=1000, **style)


def free_space(folder: Path) -> int:
    """Bytes free where `folder` is or will be."""
    existing = next(path for path in (folder.resolve(), *folder.resolve().parents) if path.exists())
    return shutil.disk_usage(existing).free
