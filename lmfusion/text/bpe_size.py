"""How many BPE symbols an amount of text is worth; the table of docs/own_text.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lmfusion.text import textio

SIZES = ((300_000, 2_000), (3_000_000, 4_000), (10_000_000, 8_000), (50_000_000, 16_000))
"""(below so many words, BPE symbols): little text wants few symbols, each seen often (Sennrich and Zhang 2019)."""
LARGEST = 32_000
WORDS_A_SYMBOL = 20
"""Never more than one symbol for so many words: for a few hundred lines."""
LETTERS_A_WORD = 6
"""The space included; by it, text without spaces has words, too."""
SYMBOLS_A_LETTER = 2
"""Never fewer symbols for each letter that the text has: Japanese has thousands."""
COVERED = 0.9999
"""Share of a text that its frequent letters make up; :func:`lmfusion.text.learn_bpe.learn` leaves out the others."""


def choose(files: Iterable[Path]) -> int:
    """Return the number of BPE symbols for the text of all files together.

    Raises:
        DataError: a file is missing or not UTF-8.
    """
    words = 0
    letters: Counter[str] = Counter()
    for path in files:
        for line in textio.read_lines(path):
            words += line.count(" ") + 1
            letters.update(line)
    return size_for(words, letters)


def size_for(words: int, letters: Counter[str]) -> int:
    """Return the number of BPE symbols.

    Args:
        words: of all text, counted by spaces.
        letters: how often each occurs.
    """
    words = max(words, letters.total() // LETTERS_A_WORD)
    by_amount = next((size for limit, size in SIZES if words < limit), LARGEST)
    return max(SYMBOLS_A_LETTER * _frequent(letters), min(by_amount, words // WORDS_A_SYMBOL))


def _frequent(letters: Counter[str]) -> int:
    """Return how many letters make up all but a ten-thousandth of the text."""
    left = COVERED * letters.total()
    for number, (_, count) in enumerate(letters.most_common(), start=1):
        left -= count
        if left <= 0:
            return number
    return len(letters)
