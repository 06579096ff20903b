"""Words of text in other scripts than Latin, for ROUGE: its own tokenizers know nothing but ASCII letters and digits.

By those, a summary in Greek, Arabic or Thai has no word at all and every score is 0.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from functools import lru_cache

import regex

ASCII, UNICODE = KINDS = ("ascii", "unicode")
SPACELESS = (
    r"\p{Han}\p{Hiragana}\p{Katakana}\u30FC\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}\p{Tai_Tham}\p{Tai_Le}\p{New_Tai_Lue}"
    r"\p{Javanese}\p{Balinese}"
)
"""Scripts that put no spaces between words (the last two none or few), for a set of the package regex; U+30FC is shared
by two of them."""
_JOINERS = r"\u200C\u200D"  # within words of Persian and of the languages of India
TOKEN = rf"[[\p{{L}}\p{{N}}]&&[{SPACELESS}]]\p{{M}}*|[[\p{{L}}\p{{N}}\p{{M}}{_JOINERS}]--[{SPACELESS}]]+"
"""A word, as a pattern of the package regex, version 1."""
_TOKEN = regex.compile(TOKEN, regex.V1)
_WORD = regex.compile(r"[\p{L}\p{N}]")
_LETTERS, _LATIN = regex.compile(r"\p{L}+"), regex.compile(r"[\p{L}&&\p{Latin}]+", regex.V1)


def kind_of(references: Iterable[str]) -> str:
    """Return which words a test set is scored by: "unicode" where most letters of its references are not Latin.

    Text in Latin letters keeps the words of ROUGE's own tokenizers, accents and all, so that its figures are those
    that others print.
    """
    letters = latin = 0
    for text in references:
        letters += sum(map(len, _LETTERS.findall(text)))
        latin += sum(map(len, _LATIN.findall(text)))
    return UNICODE if 2 * latin < letters else ASCII


def share_of_letters(texts: Iterable[str], scripts: str = SPACELESS) -> float:
    """Return the share (0..1) of the letters of texts that some scripts have; 0 where there are no letters.

    Args:
        texts: any number of them.
        scripts: what may stand in a set of the package regex; those without spaces between words by default.
    """
    found = regex.compile(rf"[\p{{L}}&&[{scripts}]]+", regex.V1)
    letters = among = 0
    for text in texts:
        letters += sum(map(len, _LETTERS.findall(text)))
        among += sum(map(len, found.findall(text)))
    return among / letters if letters else 0.0


def has_word(text: str) -> bool:
    """Return whether a text has a letter or a digit of any script."""
    return _WORD.search(text) is not None


class UnicodeTokenizer:
    """Splits texts into words of Unicode letters, marks and digits; where a script has no spaces, into characters.

    A character is a letter with the marks on it. Texts are compared in NFC and lower case.

    Args:
        normalize: stems a word of ASCII letters and digits in lower case, so that these count as in Latin text.
    """

    def __init__(self, normalize: Callable[[str], str]) -> None:
        self._normalize = lru_cache(maxsize=1 << 18)(normalize)

    def tokenize(self, text: str) -> list[str]:
        """Return the words of a text, in their order."""
        words = _TOKEN.findall(unicodedata.normalize("NFC", text).lower())
        return [self._normalize(word) if word.isascii() else word for word in words if has_word(word)]
