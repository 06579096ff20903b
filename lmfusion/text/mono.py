"""Monolingual text for the language models: without repeated lines and held-out ones, split into train and valid."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import regex

from lmfusion.text import textio
from lmfusion.text.held_out import Hashes, digest, fold
from lmfusion.text.textio import DataError

VALID_LINES = 100, 2000
"""At least and at most so many lines of valid; between them 1 %, and never more than a quarter of a small text."""
_MARK = r"[\p{Sentence_Terminal}--[.!?．﹒]]"
"""A mark that ends a sentence wherever it stands (。 ። । ؟ ۔), not one of numbers and abbreviations, too."""
_CLOSING = "[」』”’»)）]"
END_OF_SENTENCE = regex.compile(
    r"(?<=[.!?…][\"')\]”»’]*)\s+(?=[\"'(\[“«‘]*[\p{Lu}\p{Lt}\p{Lo}\p{N}])"
    rf"|(?<={_MARK})(?!{_MARK}|{_CLOSING})|(?<={_MARK}{_CLOSING})",
    regex.V1,
)
"""After . ! ? … comes a capital, a digit, or a letter of a script without capitals."""


def sentences(line: str) -> list[str]:
    """Return the sentences of a line, cut after the marks of any script that end one."""
    return [part for part in map(str.strip, END_OF_SENTENCE.split(line)) if part]


def hashes(lines: Iterable[str]) -> Hashes:
    """Return the hashes of lines by which texts are compared, without regard to capitals."""
    return np.frombuffer(b"".join(digest(fold(line)) for line in lines), "<u8")


def write(
    read: Callable[[], Iterator[str]], held_out: Hashes, seed: int, train: Path, valid: Path
) -> tuple[int, int, int, int]:
    """Write the lines of a text into `train` and `valid`, in their order.

    A line goes to valid by the hash of its text and the seed, never by its place.

    Args:
        read: starts reading the clean lines; called twice.
        held_out: what is left out, see `hashes`.
        seed: another one chooses other lines.
        train: file to write.
        valid: file to write.

    Returns:
        Numbers of lines of train, of valid, of repeated lines left out, and of held-out lines left out.

    Raises:
        DataError: there are fewer than two lines that differ in more than capitals.
    """
    exact, folded_hashes, ranks = _line_hashes(read(), seed)
    full = exact != 0
    keep = np.zeros(len(exact), bool)
    keep[np.unique(exact, return_index=True)[1]] = True
    repeated = int((full & ~keep).sum())
    same = keep & full & np.isin(folded_hashes, held_out)
    keep &= full & ~same
    if keep.sum() < 2:
        raise DataError(f"{train.name}: no text is left for the language model ({int(keep.sum())} lines).")
    border = np.sort(ranks[keep])[_valid_lines(int(keep.sum())) - 1]
    if not (ranks[keep] > border).any():
        raise DataError(f"{train.name}: no text is left for the language model: its lines differ in capitals alone.")
    counts = [0, 0]
    with textio.writing(train) as first, textio.writing(valid) as second:
        for line, kept, held in zip(read(), keep.tolist(), (ranks <= border).tolist()):
            if kept:
                (second if held else first).write(line + "\n")
                counts[held] += 1
    return counts[0], counts[1], repeated, int(same.sum())


def _line_hashes(lines: Iterable[str], seed: int) -> Hashes:
    """Return hashes of the lines as they are, folded, and folded with the seed; 3 x lines, 0 for an empty one."""
    digests = bytearray()
    for line in lines:
        folded = fold(line)
        digests += digest(line) + digest(folded) + digest(f"{seed}\n{folded}") if line else bytes(24)
    return np.frombuffer(digests, "<u8").reshape(-1, 3).T


def _valid_lines(lines: int) -> int:
    least, most = VALID_LINES
    return max(1, min(max(least, lines // 100), most, lines // 4))
