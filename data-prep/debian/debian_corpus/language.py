"""Which of two languages a sentence is in: translated pages keep passages of the original.

A naive Bayes classifier over character trigrams (Dunning 1994, "Statistical identification of language"), learned on
the corpus' own monolingual text, so that it needs nothing else and works for any language Debian translates into.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from math import log

from .text import words

SAMPLE = 20_000  # sentences to learn each language from
COMMON = 150  # words that tell running text from lists of names


def _trigrams(found: list[str]) -> list[str]:
    padded = f" {' '.join(found)} "
    return [padded[index : index + 3] for index in range(len(padded) - 2)]


class Language:
    """Tells one language from the other, and running text from lists of names."""

    def __init__(self, text: Iterable[str], other: Iterable[str]) -> None:
        own = [words(line) for line in islice(text, SAMPLE)]
        trigrams = Counter(gram for line in own for gram in _trigrams(line))
        others = Counter(gram for line in islice(other, SAMPLE) for gram in _trigrams(words(line)))
        kinds = len(trigrams | others)
        totals = [sum(counts.values()) + kinds for counts in (trigrams, others)]
        self._unseen = log(totals[1] / totals[0])
        self._odds = {
            gram: log((trigrams[gram] + 1) / (others[gram] + 1)) + self._unseen for gram in (trigrams | others)
        }
        frequent = Counter(word for line in own for word in line if word != "0")
        self.common = frozenset(word for word, _ in frequent.most_common(COMMON))

    def speaks(self, found: list[str]) -> bool:
        """Whether text, as text.words gives it, is rather in this language, and has one of its most frequent words."""
        if self.common.isdisjoint(found):
            return False
        return sum(self._odds.get(gram, self._unseen) for gram in _trigrams(found)) > 0
