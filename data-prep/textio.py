"""Reading, writing and mapping text files: the parts every data-prep step shares.

Text is UTF-8, one sentence a line; files ending in .xz or .gz are read through decompression. A file appears under its
name only when it is complete, so a killed step leaves nothing that looks finished.
"""

from __future__ import annotations

import errno
import gzip
import lzma
import multiprocessing
import os
import signal
import sys
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TextIO, cast

from tqdm import tqdm  # type: ignore[import-untyped]

CHUNK_LINES = 500
CHUNKS_PER_ROUND = 64
LOG_BAR = {"bar_format": "{desc}: {percentage:.0f}%, {remaining} left\n", "mininterval": 10, "delay": 5}
OUT_OF_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class DataError(Exception):
    """Something a person has to mend: the message names the file and the mend."""


def available_cores() -> int:
    """Number of CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def open_binary(path: Path) -> IO[bytes]:
    """Open a plain, .xz or .gz file for reading.

    Raises:
        DataError: there is no such file.
    """
    if not path.is_file():
        raise DataError(f"{path}: no such file")
    if path.suffix in (".xz", ".gz") and not path.stat().st_size:
        raise DataError(f"{path}: is empty, which no compressed file is. Fetch it again.")
    if path.suffix == ".xz":
        return lzma.open(path, "rb")
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def is_gzip(path: Path) -> bool:
    """Whether a file is compressed by gzip, whatever its name."""
    with path.open("rb") as stream:
        return stream.read(2) == b"\x1f\x8b"


def read_lines(path: Path) -> Iterator[str]:
    """Yield the lines of a UTF-8 text file without their line ends; only a line feed ends a line.

    Raises:
        DataError: missing file, bad compression, or bytes that are not UTF-8 (with the line's number).
    """
    number = 0
    try:
        with open_binary(path) as stream:
            for number, raw in enumerate(stream, start=1):  # noqa: B007 (used in the messages)
                yield raw.decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path}, line {number}: not UTF-8 (byte 0x{error.object[error.start]:02x} at position "
            f"{error.start + 1} of the line). Convert the file, e.g. "
            f"`iconv -f ISO-8859-1 -t UTF-8`, or take the line out."
        ) from error
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise DataError(
            f"{path}: cannot be decompressed after line {number} ({error}). Is it complete? Fetch it again."
        ) from error


def count_lines(path: Path) -> int:
    """Number of lines of a plain file, a last line without line feed included."""
    count, last = 0, b"\n"
    with open_binary(path) as stream:
        while block := stream.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def partial_name(path: Path) -> Path:
    """The name a file or folder has while it is being made."""
    return path.with_name(path.name + ".partial")


@contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """A text file to write; it gets its name `path` only if the block ends without an exception."""
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


def _ignore_interrupt() -> None:
    """Workers leave Ctrl-C to the parent, which then stops them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def map_lines(
    convert: Callable[[list[str]], list[str]],
    lines: Iterable[str],
    total: int,
    label: str,
    workers: int | None = None,
    initializer: Callable[..., None] | None = None,
    init_args: tuple[object, ...] = (),
) -> Iterator[str]:
    """Convert lines in all cores, in order, with a progress bar showing the time left.

    `convert` gets and returns a list of lines; `initializer` prepares each worker. Work is handed out in rounds, so
    that a file larger than memory streams through.
    """
    workers = workers or min(available_cores(), 1 + total // CHUNK_LINES)
    source = iter(lines)
    with _LinePool(workers, initializer, init_args) as pool, _progress(total, label) as bar:
        while block := list(islice(source, CHUNK_LINES * CHUNKS_PER_ROUND)):
            chunks = [block[i : i + CHUNK_LINES] for i in range(0, len(block), CHUNK_LINES)]
            for converted in pool.map(convert, chunks):
                bar.update(len(converted))
                yield from converted


class _LinePool:
    """A process pool, or this very process when one worker is enough."""

    def __init__(
        self,
        workers: int,
        initializer: Callable[..., None] | None,
        init_args: tuple[object, ...],
    ) -> None:
        self._pool = None
        if workers == 1:
            if initializer is not None:
                initializer(*init_args)
            return
        self._pool = ProcessPoolExecutor(
            workers,
            mp_context=multiprocessing.get_context("fork"),
            initializer=_prepare_worker,
            initargs=(initializer, init_args),
        )

    def map(self, convert: Callable[[list[str]], list[str]], chunks: list[list[str]]) -> Iterator[list[str]]:
        if self._pool is None:
            yield from map(convert, chunks)
            return
        try:
            yield from self._pool.map(convert, chunks)
        except BrokenProcessPool as error:
            raise DataError(
                "a worker process was killed, by the system if memory ran out. Free some and run the same command "
                "again: what is finished is kept."
            ) from error

    def __enter__(self) -> _LinePool:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)


def _prepare_worker(initializer: Callable[..., None] | None, init_args: tuple[object, ...]) -> None:
    _ignore_interrupt()
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if initializer is not None:
        initializer(*init_args)


def _end_with_parent() -> None:
    """A worker whose parent is killed would wait for work for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None, "only workers call this"
    parent.join()
    os._exit(1)


def _progress(total: int, label: str) -> tqdm:
    """A bar on a terminal; in a log file a line every ten seconds at most."""
    live = sys.stderr.isatty()
    terminal = {"mininterval": 0.2, "dynamic_ncols": True}
    return tqdm(total=total, desc=label, unit=" lines", unit_scale=True, leave=False, **(terminal if live else LOG_BAR))


def run_command(main: Callable[[], None]) -> int:
    """Run `main`; turn what a person can mend into one line on stderr and exit status 1."""
    try:
        main()
    except DataError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"error: {describe_os_error(error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nInterrupted; run the same command again to go on.", file=sys.stderr)
        return 130
    return 0


def describe_os_error(error: OSError) -> str:
    """Say what the system refused, for which file, and what to do."""
    name = error.filename or "the output"
    if error.errno in OUT_OF_SPACE:
        return (
            f"{name}: {error.strerror}. Free some space or choose another output folder, then run "
            f"the same command again; finished steps are kept."
        )
    return f"{name}: {error.strerror or error}"
