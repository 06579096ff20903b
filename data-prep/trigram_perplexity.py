#!/usr/bin/env python3
"""Does more text help, and how much of it? Asked of a trigram model, which answers in a minute on one core.

    python data-prep/prepare.py … --more-text MORE --out OUT
    python data-prep/trigram_perplexity.py OUT --lang de

prints the perplexity on mono.valid per BPE symbol, </s> counted as fairseq does, of models of a quarter, a half and all
of mono.train, of mono.more alone, and of all with half and all of mono.more. The model is Kneser and Ney's,
interpolated, with Chen and Goodman's modified discounts (1999, "An empirical study of smoothing techniques for language
modeling", section 5), over the symbols of OUT/dict.txt. Neural models generalize better; the order is what to look at.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

import textio

Sentence = list[str]
BEGIN, END = "<s>", "</s>"


class _Order:
    """Counts of n-grams of one length, as probabilities with what they leave to the shorter ones."""

    def __init__(self, counts: Counter[tuple[str, ...]]) -> None:
        self._counts = counts
        times = Counter(count for count in counts.values() if count <= 4)
        single = times[1] / (times[1] + 2 * times[2]) if times[1] else 0.0
        self._discounts = [0.0] + [
            max(0.0, n - (n + 1) * single * times[n + 1] / times[n]) if times[n] else 0.0 for n in (1, 2, 3)
        ]
        self._total: defaultdict[tuple[str, ...], int] = defaultdict(int)
        self._left: defaultdict[tuple[str, ...], float] = defaultdict(float)
        for ngram, count in counts.items():
            self._total[ngram[:-1]] += count
            self._left[ngram[:-1]] += self._discounts[min(count, 3)]

    def probability(self, ngram: tuple[str, ...], shorter: float) -> float:
        """Of the last symbol after the others, where the shorter model says `shorter`."""
        total = self._total.get(ngram[:-1], 0)
        if not total:
            return shorter
        count = self._counts.get(ngram, 0)
        return (count - self._discounts[min(count, 3)] + self._left[ngram[:-1]] * shorter) / total


class Trigrams:
    """An interpolated Kneser-Ney trigram model of sentences of symbols."""

    def __init__(self, sentences: Iterable[Sentence], symbols: int) -> None:
        """`symbols`: how many there are, </s> included; those never seen share what is left for them."""
        trigrams = Counter(ngram for sentence in sentences for ngram in _trigrams(sentence))
        # Shorter n-grams count by how many different symbols they follow, not by how often they occur.
        bigrams = Counter(ngram[1:] for ngram in trigrams)
        unigrams = Counter(ngram[1:] for ngram in bigrams)
        self._orders = [_Order(counts) for counts in (unigrams, bigrams, trigrams)]
        self._uniform = 1 / symbols

    def probability(self, first: str, second: str, third: str) -> float:
        """Of `third` after the two."""
        probability = self._uniform
        for order, ngram in zip(self._orders, ((third,), (second, third), (first, second, third))):
            probability = order.probability(ngram, probability)
        return probability

    def perplexity(self, sentences: Iterable[Sentence]) -> float:
        """Per symbol, the end of each sentence counted."""
        logs = [math.log(self.probability(*ngram)) for sentence in sentences for ngram in _trigrams(sentence)]
        return math.exp(-sum(logs) / len(logs))


def _trigrams(sentence: Sentence) -> Iterator[tuple[str, str, str]]:
    padded = [BEGIN, BEGIN, *sentence, END]
    return zip(padded, padded[1:], padded[2:])


def read(path: Path) -> list[Sentence]:
    """The symbols of each line.

    Raises:
        DataError: there is no such file, or it is not text.
    """
    if not path.is_file():
        raise textio.DataError(f"{path}: no such file. It is made by prepare.py (mono.more by its --more-text).")
    return [line.split() for line in textio.read_lines(path)]


def main() -> None:
    """Print the table.

    Raises:
        DataError: the folder is not one of prepare.py.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what prepare.py made")
    parser.add_argument("--lang", required=True)
    args = parser.parse_args()
    valid, train, more = (read(args.folder / "bpe" / f"mono.{name}.{args.lang}") for name in ("valid", "train", "more"))
    symbols = len(read(args.folder / "dict.txt")) + 1  # and </s>
    texts = {
        "a quarter": train[: len(train) // 4],
        "a half": train[: len(train) // 2],
        "all": train,
        "more alone": more,
        "all and half of more": train + more[: len(more) // 2],
        "all and more": train + more,
    }
    print("text\tsentences\tsymbols\tperplexity")
    for name, sentences in texts.items():
        perplexity = Trigrams(sentences, symbols).perplexity(valid)
        size = sum(len(sentence) + 1 for sentence in sentences)
        print(f"{name}\t{len(sentences)}\t{size}\t{perplexity:.2f}", flush=True)


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
