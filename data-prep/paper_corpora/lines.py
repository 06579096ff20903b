"""Lines of a large file in any order, without having the file in memory."""

from __future__ import annotations

import mmap
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from lmfusion.text import textio

BLOCK = 1 << 24


def line_ends(path: Path) -> np.ndarray:
    """Where each line of a file ends, behind its line feed: 8 bytes of memory a line."""
    found, position = [np.zeros(0, dtype=np.int64)], 0
    with path.open("rb") as stream:
        while block := stream.read(BLOCK):
            found.append(np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + position + 1)
            position += len(block)
    return np.concatenate(found)


def lines_at(path: Path, numbers: Sequence[int] | np.ndarray) -> Iterator[str]:
    """The lines of these numbers, from 0, in this order."""
    ends = line_ends(path)
    with path.open("rb") as stream, mmap.mmap(stream.fileno(), 0, access=mmap.ACCESS_READ) as text:
        for number in numbers:
            start = int(ends[number - 1]) if number else 0
            yield text[start : int(ends[number]) - 1].decode("utf-8")


def sample(path: Path, size: int, seed: int) -> Iterator[str]:
    """So many lines of a file, drawn without repetition, in the order of the file; all if it has no more."""
    total = textio.count_lines(path)
    if total <= size:
        yield from textio.read_lines(path)
        return
    chosen = iter(sorted(random.Random(seed).sample(range(total), size)))
    wanted = next(chosen)
    for number, line in enumerate(textio.read_lines(path)):
        if number == wanted:
            yield line
            wanted = next(chosen, -1)
