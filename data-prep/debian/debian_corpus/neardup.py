"""Which texts are near-duplicates of which others: exact, without sampling, and fast enough for plain Python.

Texts are compared in their normal form (text.words: case, punctuation and digits do not count). One is a near-duplicate
of a held-out text if any of these measures reaches its threshold:
  - bigrams: the Jaccard similarity of their word bigrams, beginning and end marked
    (one word of five exchanged in the middle: exactly 0.5);
  - words: the Jaccard similarity of their sets of words
    (the same words in another order: 1; one word of four exchanged: exactly 0.6);
  - containment: the share of the held-out text's bigrams that the other one has
    (1 where it was quoted within something longer), for held-out texts of min_contained words or more.

There are two sets of thresholds. REMOVE is for taking training text away, where catching every "Python bindings for X"
would cost much for nothing. STRICT is for calling a held-out text clean: what still resembles training text by it goes
from the held-out side, which costs but a sentence. The finished corpus is checked by STRICT.

To find them without comparing everything, prefix filtering: order all features from rare to frequent; sets that share k
of n features share at least one of the n - k + 1 rarest. So few candidates are looked up, and compared in full.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil

from tqdm import tqdm  # type: ignore[import-untyped]

from .segment import sentences
from .text import words

MIN_ATOM_WORDS = 3
BACKGROUND = 50_000  # lines of training text to judge by which words are rare


@dataclass(frozen=True)
class Thresholds:
    """From where on two texts are near-duplicates; see above."""

    bigrams: float
    words: float | None  # None: the measure is not used
    containment: float
    min_contained: int
    max_whole: int  # a line of more words is compared by its parts only: as a whole, it has anything in it by chance


REMOVE = Thresholds(bigrams=0.5, words=None, containment=0.7, min_contained=6, max_whole=100)
STRICT = Thresholds(bigrams=0.5, words=0.6, containment=0.7, min_contained=4, max_whole=40)


def atoms(line: str, lang: str, max_whole: int) -> list[str]:
    """What of a line is compared: the line, its sentences, and what semicolons part (list items on one line)."""
    found = dict.fromkeys([line] if len(line.split()) <= max_whole else [])
    for sentence in sentences(line, lang):
        found[sentence] = None
        if "; " in sentence:
            found.update(dict.fromkeys(part.strip() for part in sentence.split("; ")))
    return list(found)


def held_out_atoms(line: str, lang: str, thresholds: Thresholds) -> list[str]:
    """The parts of a held-out line that are long enough to be recognized again."""
    return [atom for atom in atoms(line, lang, thresholds.max_whole) if len(words(atom)) >= MIN_ATOM_WORDS]


@dataclass
class _Features:
    """What two texts are compared by; `inner` are the bigrams without the marks of beginning and end."""

    words: set[str]
    bigrams: set[str]
    inner: set[str]
    length: int


def _features(text: str) -> _Features:
    found = words(text)
    inner = {f"{first} {second}" for first, second in zip(found, found[1:])}
    edges = {f"^ {found[0]}", f"{found[-1]} $"} if found else set()
    return _Features(set(found), inner | edges, inner, len(found))


class _Index:
    """Which held-out sets can reach a similarity with a given set; some that it names do not, but it misses none."""

    def __init__(self, sets: Sequence[set[str]], threshold: float, background: Iterable[set[str]]) -> None:
        self._sets = sets
        self._threshold = threshold
        self._frequency = Counter(feature for features in chain(sets, background) for feature in features)
        self._numbers: dict[str, list[int]] = {}
        for number, features in enumerate(sets):
            for feature in self._rarest(features):
                self._numbers.setdefault(feature, []).append(number)

    def _rarest(self, features: set[str]) -> list[str]:
        """Of the features, those of which a set that shares a `threshold` of them must have one."""
        frequency = self._frequency
        order = sorted(features, key=lambda feature: (frequency[feature], feature))
        return order[: len(order) - ceil(self._threshold * len(order)) + 1]

    def by_jaccard(self, asked: set[str]) -> set[int]:
        """Sets whose Jaccard similarity with `asked` is at least the threshold."""
        found = {number for feature in self._rarest(asked) for number in self._numbers.get(feature, ())}
        return {number for number in found if self._jaccard(self._sets[number], asked) >= self._threshold}

    def by_containment(self, asked: set[str]) -> set[int]:
        """Sets of which at least a `threshold` share is in `asked`."""
        found = {number for feature in asked for number in self._numbers.get(feature, ())}
        sets, threshold = self._sets, self._threshold
        return {number for number in found if len(sets[number] & asked) >= threshold * len(sets[number])}

    @staticmethod
    def _jaccard(one: set[str], other: set[str]) -> float:
        shared = len(one & other)
        return shared / (len(one) + len(other) - shared)


class HeldOut:
    """An index of held-out texts, asked with one training text after another."""

    def __init__(self, texts: Sequence[str], thresholds: Thresholds, background: Iterable[str] = ()) -> None:
        """`background` is text to judge by what is rare: the index answers the same without, but slower."""
        self.texts = texts
        self.thresholds = thresholds
        held = [_features(text) for text in texts]
        usual = [_features(text) for text in background]
        nothing: set[str] = set()

        def index(part: Callable[[_Features], set[str]], threshold: float, min_length: int) -> _Index:
            sets = [part(features) if features.length >= min_length else nothing for features in held]
            return _Index(sets, threshold, map(part, usual))

        self._bigrams = index(lambda features: features.bigrams, thresholds.bigrams, MIN_ATOM_WORDS)
        self._inner = index(lambda features: features.inner, thresholds.containment, thresholds.min_contained)
        self._words = None
        if thresholds.words is not None:
            self._words = index(lambda features: features.words, thresholds.words, MIN_ATOM_WORDS)

    def matches(self, text: str) -> list[int]:
        """The numbers of the held-out texts of which `text` is a near-duplicate."""
        asked = _features(text)
        found = self._bigrams.by_jaccard(asked.bigrams) | self._inner.by_containment(asked.inner)
        if self._words is not None:
            found |= self._words.by_jaccard(asked.words)
        return sorted(found)


def matching_lines(held_out: HeldOut, lines: Iterable[str], lang: str) -> dict[str, set[int]]:
    """Training line -> the held-out texts that it, or a part of it, is a near-duplicate of; others are left out."""
    known: dict[str, list[int]] = {}  # the same sentence stands in many descriptions
    found: dict[str, set[int]] = {}
    for line in lines:
        numbers: set[int] = set()
        for atom in atoms(line, lang, held_out.thresholds.max_whole):
            if atom not in known:
                known[atom] = held_out.matches(atom)
            numbers.update(known[atom])
        if numbers:
            found[line] = numbers
    return found


def resembled(
    held: Iterable[str], train: Iterable[str], lang: str, thresholds: Thresholds, title: str = ""
) -> dict[str, str]:
    """Held-out line -> a training line that has a near-duplicate of it or of a part of it; clean lines are left out."""
    parts = {line: held_out_atoms(line, lang, thresholds) for line in dict.fromkeys(held)}
    lines = list(dict.fromkeys(train))
    index = HeldOut(sorted({atom for found in parts.values() for atom in found}), thresholds, lines[:BACKGROUND])
    first: dict[str, str] = {}
    name = title or f"near-duplicates, {lang}"
    progress = tqdm(lines, desc=name, unit=" lines", mininterval=1, leave=False, disable=None)
    for line, numbers in matching_lines(index, progress, lang).items():
        for number in numbers:
            first.setdefault(index.texts[number], line)
    hits = {line: next((first[atom] for atom in found if atom in first), None) for line, found in parts.items()}
    return {line: like for line, like in hits.items() if like is not None}
