"""The characters of a text that are to be symbols of its BPE, rare ones as well, and those that are none."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable
from pathlib import Path

from lmfusion.text import textio
from lmfusion.text.printable import standing_alone

COVERED = 0.9999
"""Share of a text that its frequent letters make up; :func:`lmfusion.text.learn_bpe.learn` leaves out the others."""
LEAST = 2
"""Times that a letter has to occur: of one that occurs once, little is learned."""
RESERVED = "▁▅"
"""What sentencepiece writes for a space and for a letter that it leaves out."""
NAMED = 10


def count(files: Iterable[Path]) -> Counter[str]:
    """Return how often each character occurs in all files together, spaces included.

    Raises:
        DataError: a file is missing or not UTF-8.
    """
    found: Counter[str] = Counter()
    for path in files:
        for line in textio.read_lines(path):
            found.update(line)
    return found


def frequent(letters: Counter[str]) -> int:
    """Return how many letters make up all but a ten-thousandth of the text."""
    left = COVERED * letters.total()
    for number, (_, times) in enumerate(letters.most_common(), start=1):
        left -= times
        if left <= 0:
            return number
    return len(letters)


def rarer(letters: Counter[str]) -> int:
    """Return how many more letters are worth a symbol: those that occur twice, and no more than the frequent ones."""
    common = frequent(letters)
    return max(0, min(common, sum(times >= LEAST for times in letters.values()) - common))


def wanted(letters: Counter[str], size: int) -> str:
    """Return the characters that are to be symbols of a BPE, the most frequent first.

    Args:
        letters: how often each occurs.
        size: symbols of the BPE. Two thirds of them are letters at most; the others are left for what letters make up.
    """
    most = min(frequent(letters) + rarer(letters), 2 * size // 3)
    found = [letter for letter, times in _by_number(letters) if times >= LEAST]
    return "".join(found[:most])


def without_symbol(letters: Counter[str], symbols: Collection[str]) -> list[str]:
    """Return a note that names the characters that are no symbols, or nothing if all are.

    Args:
        letters: how often each occurs.
        symbols: of the BPE.
    """
    known = set(symbols)
    every = _by_number(letters)
    left_out = [(letter, times) for letter, times in every if letter not in known]
    if not left_out:
        return []
    named = ", ".join(f"{standing_alone(letter)} ({times:,})" for letter, times in left_out[:NAMED])
    return [
        f"{len(left_out):,} of the text's {len(every):,} characters are too rare for a symbol and become <unk>; how "
        f"often they occur: {named}{', …' if len(left_out) > NAMED else ''}"
    ]


def _by_number(letters: Counter[str]) -> list[tuple[str, int]]:
    """Return the characters that can be symbols of fairseq's dictionary, and how often each occurs."""
    pairs = sorted(letters.items(), key=lambda pair: (-pair[1], pair[0]))
    return [(x, times) for x, times in pairs if not (x.isspace() or x in RESERVED or unicodedata.category(x) == "Cc")]
