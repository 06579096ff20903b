"""A summary as ROUGE-1.5.5 sees it with ``-m``: sentences of stemmed words."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Callable

from lmfusion.errors import UserError
from lmfusion.scoring.porter import stem
from lmfusion.scoring.text_files import PathLike, read_lines

Sentences = list[list[str]]

UNSTEMMED = 3
"""Words up to this length are left as they are."""

_WORD = re.compile("[A-Za-z0-9]+")


def reader(marker: str | None, exceptions: Mapping[str, str]) -> Callable[[str], Sentences]:
    """A function from a summary's text to the words of each of its sentences that has any.

    A word is a run of ASCII letters and digits, lower-cased; every other character, accented letters included,
    separates words, as it does for the script, which reads bytes.

    Args:
        marker: what stands between sentences; None if a text is one sentence.
        exceptions: base forms by irregular form (mice: mouse), for words that are not to be stemmed.

    Raises:
        UserError: the marker is empty.
    """
    if marker == "":
        raise UserError("The sentence marker is empty. Give the text that stands between sentences, for example <q>.")

    @lru_cache(maxsize=1 << 18)
    def normalize(word: str) -> str:
        word = word.lower()
        if len(word) <= UNSTEMMED:
            return word
        return exceptions[word] if word in exceptions else stem(word)

    def read(text: str) -> Sentences:
        parts = [text] if marker is None else text.split(marker)
        sentences = ([normalize(word) for word in _WORD.findall(part)] for part in parts)
        return [sentence for sentence in sentences if sentence]

    return read


def read_exceptions(paths: Sequence[PathLike]) -> dict[str, str]:
    """Base forms by irregular form, from files in WordNet's format: the irregular form, then the base form, per line.

    Where two lines have the same irregular form, the last one counts.

    Raises:
        UserError: a file cannot be read, or a line has no two words.
    """
    exceptions = {}
    for path in paths:
        for number, line in enumerate(read_lines(path), start=1):
            words = line.split()
            if len(words) < 2:
                raise UserError(
                    f"{path}, line {number}, has no two words. Each line of a list of exceptions (WordNet's noun.exc "
                    "and so on) holds an irregular form and its base form."
                )
            exceptions[words[0]] = words[1]
    return exceptions


def fingerprint(exceptions: Mapping[str, str]) -> str:
    """A short name for a list of exceptions: their number and the start of a hash; "none" without any."""
    if not exceptions:
        return "none"
    text = "".join(f"{irregular} {base}\n" for irregular, base in sorted(exceptions.items()))
    return f"{len(exceptions)}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
