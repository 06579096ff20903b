"""Converting the lines of a text in all cores, in order, with a progress bar."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from itertools import islice

from lmfusion.text import textio
from lmfusion.text.progress import progress

CHUNK_LINES = 500
CHUNKS_PER_ROUND = 64


def available_cores() -> int:
    """Number of CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def openmp_threads() -> int:
    """Number of threads that OMP_NUM_THREADS gives OpenMP's outermost loops; as many as cores where it gives none."""
    first = os.environ.get("OMP_NUM_THREADS", "").split(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else available_cores()


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
    that a file larger than memory streams through. Raises DataError where there are no workers, or one is killed.
    """
    if workers is not None and workers < 1:
        raise textio.DataError(f"--workers {workers}: give a number above 0, or leave it out for all cores.")
    workers = workers or min(available_cores(), 1 + total // CHUNK_LINES)
    source = iter(lines)
    with _LinePool(workers, initializer, init_args) as pool, progress(total=total, label=label) as bar:
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
            raise textio.DataError(
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
