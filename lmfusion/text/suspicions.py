"""What may be wrong with a text, by cheap guesses: warnings with figures, for a person to judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lmfusion.text import looks
from lmfusion.text.held_out import fold

FEW = 20  # pairs or lines below which nothing is guessed
LONG_LINE = 150  # words: a document, not a sentence
BLOCK = 200  # pairs whose lengths are compared at a time
RELATED = 0.3  # correlation of lengths below which lines are not each other's translations; true pairs have 0.8 or more
Profile = Counter[str]


def pairs(sample: list[tuple[str, str]], sides: tuple[str, str], one_language: bool) -> list[str]:
    """Return warnings about the pairs themselves.

    Args:
        sample: some of the pairs.
        sides: what the two sides are called; the languages unless `one_language`.
        one_language: whether both sides are in the same language, as in summarization.
    """
    if len(sample) < FEW:
        return []
    notes = []
    same = sum(fold(source) == fold(target) for source, target in sample) / len(sample)
    if same > 0.3:
        notes.append(f"{same:.0%} of the pairs have the same text on both sides: are they translated?")
    texts = {side: [pair[number] for pair in sample] for number, side in enumerate(sides)}
    for side, side_lines in texts.items():
        notes += _tokenized(side_lines, f"the {side} side")
        if not one_language:
            notes += lines(side_lines, f"the {side} side")
    if one_language and sum(len(target) > len(source) for source, target in sample) > 0.8 * len(sample):
        notes.append(f"the {sides[1]} side is longer than the {sides[0]} side: swapped?")
    return notes + ([] if one_language else _languages(sides, texts))


def lines(text: list[str], name: str) -> list[str]:
    """Return a warning if lines are as long as documents."""
    long = sum(line.count(" ") >= LONG_LINE for line in text)
    if len(text) < FEW or long < 0.05 * len(text):
        return []
    return [f"{name}: {long / len(text):.0%} of the lines have over {LONG_LINE} words; one sentence a line is expected"]


def _tokenized(text: list[str], name: str) -> list[str]:
    """Return a warning if the marks stand apart from the words, as after a tokenizer, or words are in BPE pieces."""
    marked = [line for line in text if re.search(r"\w ?[.,](\s|$)", line)]
    apart = sum(bool(re.search(r"\w [.,](\s|$)", line)) for line in marked)
    if len(marked) >= FEW and apart > 0.5 * len(marked):
        return [f"{name} looks tokenized ({apart / len(marked):.0%} of the lines with . or , have a space before it)"]
    pieces = sum("@@ " in line or "▁" in line for line in text)
    if pieces > 0.1 * len(text):
        return [f"{name} looks cut into BPE pieces ({pieces / len(text):.0%} of the lines have @@ or ▁)"]
    return []


def _languages(sides: tuple[str, str], texts: dict[str, list[str]]) -> list[str]:
    """Return a warning if the sides are swapped, else one for each side that is hardly in its language."""
    if _look_swapped(sides, texts):
        return [f"the {sides[0]} side looks like {sides[1]}, and the {sides[1]} side like {sides[0]}: swapped?"]
    return [note for side in sides for note in looks.doubts(side, texts[side], f"the {side} side")]


def _look_swapped(sides: tuple[str, str], texts: dict[str, list[str]]) -> bool:
    """Return whether every side whose language is known fits the other side's text at least twice as well."""
    known = [side for side in sides if looks.is_known(side)]
    for side in known:
        other = sides[1] if side == sides[0] else sides[0]
        elsewhere = looks.fit(side, texts[other])
        if elsewhere < looks.COMMON or elsewhere < 2 * looks.fit(side, texts[side]):
            return False
    return bool(known)


def profile(text: Iterable[str]) -> Profile:
    """Return how often each three characters in a row occur in a text."""
    counts: Profile = Counter()
    for line in text:
        padded = f" {line.casefold()} "
        counts.update(padded[start : start + 3] for start in range(len(padded) - 2))
    return counts


def swapped(sides: dict[str, Profile], texts: dict[str, Profile], name: str) -> list[str]:
    """Return a warning if each of `texts` is more like the other side than like its own.

    Args:
        sides: source and target side of the training pairs.
        texts: other text that should be like one side, or both, under the same names.
        name: what to call it.
    """
    for side, text in texts.items():
        own, other = (_likeness(text, sides[key]) for key in (side, *(key for key in sides if key != side)))
        if sum(text.values()) < 500 or own > 0.8 * other:
            return []
    what = " and ".join(texts)
    return [f"{name} in {what} is more like the other side of the training pairs: are languages or files swapped?"]


def _likeness(one: Profile, other: Profile) -> float:
    """Return the cosine of two profiles, by square roots so that the commonest do not decide alone."""
    product = sum((count * other[key]) ** 0.5 for key, count in one.items())
    return float(product / max(1.0, (sum(one.values()) * sum(other.values())) ** 0.5))


def alignment(lengths: NDArray[np.int64]) -> list[str]:
    """Return a warning if the two sides' lengths have nothing to do with each other, all over or from some line on.

    Args:
        lengths: characters, pairs x 2.
    """
    start = misaligned_from(lengths)
    if start is None:
        return []
    where = f"from about line {start + 1:,} of {len(lengths):,} on" if start else "everywhere"
    return [
        f"{where}, the lengths of the two sides are unrelated: "
        f"is line n of the one really the translation of line n of the other?"
    ]


def misaligned_from(lengths: NDArray[np.int64]) -> int | None:
    """Return after how many pairs the two sides' lengths cease to be related, or None if they do not.

    Args:
        lengths: characters, pairs x 2.
    """
    blocks = [lengths[start : start + BLOCK] for start in range(0, len(lengths), BLOCK)]
    blocks = [block for block in blocks if len(block) >= BLOCK // 2]
    related = [_correlation(block) >= RELATED for block in blocks]
    last = max((number for number, fits in enumerate(related) if fits), default=-1)
    unrelated = len(blocks) - 1 - last
    return (last + 1) * BLOCK if unrelated and unrelated >= min(3, len(blocks)) else None


def _correlation(block: NDArray[np.int64]) -> float:
    full = block[(block > 0).all(axis=1)]
    logs = np.log(full) if len(full) else np.zeros((0, 2))
    if len(full) < FEW or (logs.std(axis=0) < 0.1).any():
        return 1.0  # lengths that hardly vary say nothing
    return float(np.corrcoef(logs.T)[0, 1])
