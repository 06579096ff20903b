"""Read files of word vectors: word2vec (text and binary), fastText's ``.vec``, GloVe; also compressed by gzip or xz.

====================  ==========================================================================================
word2vec text, .vec   a header ``V C``, then V lines ``word x1 ... xC``
word2vec binary       the same header, then V times ``word``, a space and C little-endian float32 numbers
GloVe                 lines ``word x1 ... xC`` without a header; a word may have spaces inside
====================  ==========================================================================================
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO

import numpy as np
import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.text import textio
from lmfusion.text.progress import progress

_HEADER = re.compile(rb"(\d{1,12}) (\d{1,6})[ \t\r]*\n?")
BEGINNING = (
    "A file of word vectors begins with a line of two numbers, how many and of what width (word2vec, fastText), or, "
    "in a text file, with a word and its vector (GloVe)."
)
_NOT_IN_TEXT = frozenset(range(0x20)) - frozenset(b"\t\n\r")
_LONGEST_LINE, _PEEK, _LONGEST_WORD = 1 << 22, 1 << 10, 10_000


@dataclass(frozen=True)
class Layout:
    """The layout of a file of word vectors.

    Attributes:
        count: V, number of vectors that the header announces; None: there is no header.
        width: C, numbers of a vector.
        binary: True for word2vec's binary format.
    """

    count: int | None
    width: int
    binary: bool = False


@dataclass
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: V words in the order of the file.
        vectors: V x C, float32.
    """

    words: list[str]
    vectors: Tensor


def recognize(path: Path) -> Layout | None:
    """Return the layout of a file of word vectors, judged by its beginning; None: it is none."""
    if not path.is_file():
        return None
    try:
        with textio.open_binary(path) as stream:
            first, following = stream.readline(_LONGEST_LINE), stream.read(_PEEK)
    except (InputError, *textio.BAD_COMPRESSION):
        return None
    header = _HEADER.fullmatch(first.removeprefix(b"\xef\xbb\xbf"))
    if header:
        return Layout(int(header[1]), int(header[2]), binary=not _NOT_IN_TEXT.isdisjoint(following))
    pieces = first.rstrip(b" \t\r\n").split(b" ")
    # A line of two, a word and a number, is one of a dictionary with counts.
    if len(pieces) > 2 and pieces[0] and all(map(_is_number, pieces[1:])):
        return Layout(None, len(pieces) - 1)
    return None


def read_vectors(path: Path) -> WordVectors:
    """Read a file of word vectors.

    Raises:
        InputError: naming the line (in a binary file the vector's number) that has another width, no numbers, a number
            that is not finite, or a word that was there before; or that the file is cut off.
    """
    layout = recognize(path)
    if layout is None:
        raise InputError(f"{path} is no file of word vectors. {BEGINNING}")
    table = _Table(path, layout)
    try:
        if layout.binary:
            _read_binary(table)
        else:
            _read_text(table)
    except textio.BAD_COMPRESSION as error:
        raise InputError(f"{path}: cannot be decompressed ({error}). Is it complete? Fetch it again.") from error
    return table.finish()


@dataclass
class _Table:
    """Vectors read so far, and the words of messages about them."""

    path: Path
    layout: Layout
    index: dict[str, int] = field(default_factory=dict)
    numbers: array[float] = field(default_factory=lambda: array("f"))

    def place(self, number: int) -> str:
        """Name the place of a vector, counted from 0, for a message."""
        if self.layout.binary:
            return f"{self.path}, vector {number + 1}"
        return f"{self.path}, line {number + 1 + (self.layout.count is not None)}"

    def add(self, word: str) -> None:
        """Add a word, whose numbers have been added to the others."""
        number = len(self.index)
        if not word or "\n" in word:
            raise InputError(f"{self.place(number)}: a vector without a word, or with a line end in it: take it out.")
        first = self.index.setdefault(word, number)
        if first != number:
            earlier = self.place(first).removeprefix(f"{self.path}, ")
            raise InputError(
                f"{self.place(number)}: {word!r} has a vector already, in {earlier}. Take one of them out."
            )

    def finish(self) -> WordVectors:
        """Return all vectors after the checks that need all of them."""
        found, announced = len(self.index), self.layout.count
        if announced is not None and found != announced:
            raise InputError(
                f"{self.path}, line 1, announces {announced:,} vectors, but there are {found:,}: is the file complete? "
                f"It was read as {'binary, for there are control characters in it' if self.layout.binary else 'text'}."
            )
        if not self.numbers:
            raise InputError(f"{self.path} has no vectors.")
        vectors = np.frombuffer(self.numbers, dtype=np.float32).reshape(-1, self.layout.width)
        # A finite sum has finite terms, and is quicker to ask for.
        wrong = np.flatnonzero(~np.isfinite(vectors.sum(axis=1, dtype=np.float64)))
        if len(wrong):
            word = list(self.index)[wrong[0]]
            raise InputError(f"{self.place(int(wrong[0]))}: the vector of {word!r} has a number that is not finite.")
        return WordVectors(list(self.index), torch.from_numpy(vectors))


def _is_number(text: str | bytes) -> bool:
    try:
        float(text)
        return "_" not in (text if isinstance(text, str) else text.decode("ascii"))  # Python's own way to write 1_000
    except ValueError:
        return False


def _read_text(table: _Table) -> None:
    lines = textio.read_lines(table.path)
    if table.layout.count is not None:
        next(lines)
    for line in progress(lines, total=table.layout.count, label=table.path.name):
        pieces = line.rstrip(" \t\r").rsplit(" ", table.layout.width)
        _check_width(table, pieces)
        try:
            table.numbers.extend(map(float, pieces[1:]))
            is_right = "_" not in line[len(pieces[0]) :]
        except ValueError:
            is_right = False
        if not is_right:
            wrong = next(piece for piece in pieces[1:] if not _is_number(piece))
            raise InputError(f"{table.place(len(table.index))}: {wrong!r} is no number.")
        table.add(pieces[0])


def _check_width(table: _Table, pieces: Sequence[str]) -> None:
    """Refuse a line with more or fewer numbers than the others; a word may have spaces inside."""
    more = [piece for piece in pieces[0].split(" ")[1:] if _is_number(piece)]
    if len(pieces) == table.layout.width + 1 and not more:
        return
    raise InputError(
        f"{table.place(len(table.index))}: {len(pieces) - 1 + len(more)} numbers behind {pieces[0].split(' ')[0]!r}, "
        f"where a vector of this file has {table.layout.width}."
    )


def _read_binary(table: _Table) -> None:
    with textio.open_binary(table.path) as stream:
        stream.readline()
        for word, numbers in progress(
            _records(table, stream), total=table.layout.count, label=table.path.name, unit=" vectors"
        ):
            table.numbers.frombytes(np.frombuffer(numbers, dtype="<f4").astype(np.float32).tobytes())
            table.add(word)
        if stream.read(_PEEK).strip(b"\r\n"):
            raise InputError(f"{table.path} goes on behind the {table.layout.count:,} vectors that line 1 announces.")


def _records(table: _Table, stream: IO[bytes]) -> Iterator[tuple[str, bytes]]:
    """Yield words and the bytes of their vectors as far as the file goes."""
    assert table.layout.count is not None
    for number in range(table.layout.count):
        letters = b"".join(islice(iter(lambda: stream.read(1), b" "), _LONGEST_WORD))
        numbers = stream.read(4 * table.layout.width)
        if len(numbers) < 4 * table.layout.width:
            return
        try:
            # The original program ends a vector by a line end, others do not.
            yield letters.removeprefix(b"\n").decode("utf-8"), numbers
        except UnicodeDecodeError as error:
            raise InputError(f"{table.place(number)}: its word is not UTF-8 ({error.reason}).") from error
