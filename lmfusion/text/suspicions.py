"""Guess from a sample what may be wrong with text, before hours are spent on it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from itertools import islice
from pathlib import Path
from typing import Protocol

import numpy as np

from lmfusion.text import formats

SAMPLE = 5000
LEAST = 200
"""Fewer pairs say nothing."""
LOW_CORRELATION = 0.3
DOCUMENT = 120
"""Words of a line that is no sentence."""


class Sides(Protocol):
    """Name two sides."""

    @property
    def source(self) -> str:
        """Return the source side's name."""

    @property
    def target(self) -> str:
        """Return the target side's name."""

    @property
    def text_language(self) -> str | None:
        """Return the language of both sides, where these are not named by languages."""


def about(request: Sides, folder: Path) -> list[str]:
    """Return warnings about a corpus folder, each a line with its figures.

    Args:
        request: names of the sides.
        folder: with ``train.SOURCE`` and so on.
    """
    sources, targets = (
        list(islice(formats.lines(folder / f"train.{side}"), SAMPLE)) for side in (request.source, request.target)
    )
    if len(sources) < LEAST:
        return []
    if request.text_language:
        return _tokenized(request.source, sources)
    found = [*_identical(sources, targets), *_uncorrelated(sources, targets)]
    found += [*_documents(request.source, sources), *_tokenized(request.source, sources)]
    found += [*_tokenized(request.target, targets), *_swapped(request, folder, sources, targets)]
    return found


def _identical(sources: list[str], targets: list[str]) -> list[str]:
    share = sum(source == target for source, target in zip(sources, targets)) / len(sources)
    return [f"{share:.0%} of the pairs have the same text on both sides"] if share > 0.2 else []


def _uncorrelated(sources: list[str], targets: list[str]) -> list[str]:
    lengths = np.array([[len(source), len(target)] for source, target in zip(sources, targets)], dtype=float).T
    if not all(np.std(each) > 0 for each in lengths):
        return []
    correlation = float(np.corrcoef(lengths)[0, 1])
    if correlation >= LOW_CORRELATION:
        return []
    return [f"lengths of source and target hardly go together (correlation {correlation:.2f}): are lines shifted?"]


def _documents(side: str, texts: list[str]) -> list[str]:
    middle = int(np.median([text.count(" ") + 1 for text in texts]))
    return [f"lines in {side} have {middle} words in the middle: are they sentences?"] if middle > DOCUMENT else []


def _tokenized(side: str, texts: list[str]) -> list[str]:
    share = sum(text.endswith((" .", " ?", " !")) or " , " in text for text in texts) / len(texts)
    if share < 0.3:
        return []
    return [f"{share:.0%} of the lines in {side} have spaces before punctuation: tokenized already? Give plain text."]


def _swapped(request: Sides, folder: Path, sources: list[str], targets: list[str]) -> list[str]:
    """Compare the sides with the plain text of both languages, by the frequencies of three letters."""
    plain = [folder / f"mono.train.{side}" for side in (request.source, request.target)]
    profiles = [_profile(islice(formats.lines(path), SAMPLE)) for path in plain]
    straight = _likeness(profiles[0], _profile(sources)) + _likeness(profiles[1], _profile(targets))
    crossed = _likeness(profiles[0], _profile(targets)) + _likeness(profiles[1], _profile(sources))
    if crossed <= straight:
        return []
    return [
        f"the {request.source} side looks like the plain text in {request.target}, and the other way round (likeness "
        f"{crossed / 2:.2f} crossed, {straight / 2:.2f} as given): are two files swapped?"
    ]


def _profile(texts: Iterable[str]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for text in texts:
        padded = f" {text.casefold()} "
        counts.update(padded[start : start + 3] for start in range(len(padded) - 2))
    return counts


def _likeness(first: Counter[str], second: Counter[str]) -> float:
    """Return the cosine of two profiles."""
    product = sum(count * second[letters] for letters, count in first.items())
    norms = [float(np.sqrt(sum(count * count for count in each.values()))) for each in (first, second)]
    return product / (norms[0] * norms[1]) if all(norms) else 0.0
