"""How many BPE symbols an amount of text is worth; the table of docs/own_text.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from lmfusion.text import letters, textio

SIZES = ((300_000, 2_000), (3_000_000, 4_000), (10_000_000, 8_000), (50_000_000, 16_000))
"""(below so many words, BPE symbols): little text wants few symbols, each seen often (Sennrich and Zhang 2019)."""
LARGEST = 32_000
WORDS_A_SYMBOL = 20
"""Never more than one symbol for so many words: for a few hundred lines."""
LETTERS_A_WORD = 6
"""The space included; by it, text without spaces has words, too."""
SYMBOLS_A_LETTER = 2
"""Never fewer symbols for each frequent letter that the text has: Japanese has thousands. One more for a rarer one."""


def choose(files: Iterable[Path], pairs: Iterable[Path] = ()) -> int:
    """Return the number of BPE symbols for the text of all files together.

    Args:
        files: text that the BPE is learned on.
        pairs: text that it is not learned on but has to write, such as the training pairs': only its letters count.

    Raises:
        DataError: a file is missing or not UTF-8.
    """
    words = 0
    text: Counter[str] = Counter()
    for path in files:
        for line in textio.read_lines(path):
            words += line.count(" ") + 1
            text.update(line)
    return size_for(max(words, text.total() // LETTERS_A_WORD), text | letters.count(pairs))


def size_for(words: int, found: Counter[str]) -> int:
    """Return the number of BPE symbols.

    Args:
        words: of all text.
        found: how often each letter occurs.
    """
    by_amount = next((size for limit, size in SIZES if words < limit), LARGEST)
    by_letters = SYMBOLS_A_LETTER * letters.frequent(found) + letters.rarer(found)
    return max(by_letters, min(by_amount, words // WORDS_A_SYMBOL))
