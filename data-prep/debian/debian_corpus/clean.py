"""What counts as usable text, and as a usable translation pair."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import median

from .text import count_words, key, tidy, words

MAX_WORDS = 100  # of either side of a training pair, and of a monolingual sentence
MIN_LETTERS = 0.6  # share of letters among the characters that are not spaces
MAX_RATIO = 2.0  # of a pair's length ratio to the corpus' median ratio
MAX_COPIED = 0.7  # share of the target's words that are the source's: above it, nobody translated

_PLACEHOLDER = re.compile(r"</?trans>|^\W*$", re.IGNORECASE)  # what the translation system puts for missing paragraphs
_URL = re.compile(r"(?:https?|ftp|git|svn)://\S+|www\.\S+|\S+@\S+\.\S+")
_MARKUP = re.compile(r"^(?:[-*+•·–‣]|o(?=\s+[A-Z]))\s+|\s+[*•]$")


def clean(text: str) -> str:
    """Tidy, without a list marker that slipped through."""
    text = tidy(_MARKUP.sub("", tidy(text)))
    # Doubled quotes and spaces before a full stop are slips of typing.
    return re.sub(r"\s+([.,;])(?=\s|$)", r"\1", text.replace("``", '"').replace("''", '"'))


def usable(text: str, min_words: int = 1) -> bool:
    """Natural language rather than an address, a placeholder, a table or code."""
    if not text or _PLACEHOLDER.search(text):
        return False
    rest = _URL.sub("", text)
    dense = rest.replace(" ", "")
    letters = sum(char.isalpha() or (char.isalnum() and ord(char) > 0x2E7F) or _is_mark(char) for char in dense)
    spelled = [word for word in words(rest) if word != "0"]
    return (
        len(spelled) >= min_words
        and len(dense) >= 2
        and letters >= MIN_LETTERS * len(dense)
        and count_words(text) <= MAX_WORDS
    )


def _is_mark(char: str) -> bool:
    """Vowel signs of Indic and Khmer scripts are letters to the reader, but not to str.isalpha."""
    return "\u0900" <= char <= "\u0dff" or "\u1780" <= char <= "\u17ff"


def copied(source: str, target: str) -> bool:
    """Whether the target is the source left as it was, wholly or for the most part."""
    if key(source) == key(target):
        return True
    target_words = words(target)
    if len(target_words) < 4:
        return False
    source_words = set(words(source))
    return sum(word in source_words for word in target_words) > MAX_COPIED * len(target_words)


class LengthRatio:
    """Compares a pair's lengths in characters with what is usual for the language pair.

    Languages differ: German runs a sixth longer than English, Japanese takes half the characters. So the usual ratio is
    measured, on the synopses, which are aligned by construction.
    """

    def __init__(self, aligned: Iterable[tuple[str, str]]) -> None:
        ratios = [len(target) / len(source) for source, target in aligned if source and target]
        self.usual = median(ratios) if ratios else 1.0

    def fits(self, source: str, target: str) -> bool:
        """Short texts vary more: a few characters are allowed on either side."""
        expected = len(source) * self.usual
        slack = 8
        return len(target) <= MAX_RATIO * expected + slack and expected <= MAX_RATIO * len(target) + slack


def usable_pair(source: str, target: str, ratio: LengthRatio) -> bool:
    """Whether two texts pass as each other's translation."""
    return usable(source) and usable(target) and not copied(source, target) and ratio.fits(source, target)
