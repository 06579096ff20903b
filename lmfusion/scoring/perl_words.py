"""Words as ``ROUGE-1.5.5.pl -m`` counts them: a tokenizer for rouge-score, on NLTK's Porter stemmer.

Importing this loads NLTK, which takes seconds: do it where words are about to be counted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from nltk.stem.porter import PorterStemmer
from rouge_score.tokenizers import Tokenizer

UNSTEMMED = 3
"""Words up to this length are left as they are."""

_WORD = re.compile("[A-Za-z0-9]+")
_STEP_4 = tuple("al ance ence er ic able ible ant ement ou ism ate iti ous ive ize".split())


class PerlStemmer(PorterStemmer):
    """The Porter stemmer as ROUGE-1.5.5 has it.

    It is Porter's algorithm (Porter 1980, "An algorithm for suffix stripping", Program 14(3)) with the departures of
    his own Perl release, which NLTK has as a mode, and two more: -ment, and then -ent or -ion, are tried after the
    other suffixes of step 4 (fundamental -> fundam, where others say fundament), and a doubled y stays double.
    """

    def __init__(self) -> None:
        super().__init__(mode=PorterStemmer.MARTIN_EXTENSIONS)

    def _ends_double_consonant(self, word: str) -> bool:
        """Tell whether step 1b takes a letter away after -ed and -ing, if l, s and z do not forbid it."""
        return not word.endswith("y") and bool(super()._ends_double_consonant(word))

    def _step4(self, word: str) -> str:
        """Take up to three suffixes away, each only if m > 1 holds for what it leaves."""

        def is_long(rest: str) -> bool:
            return bool(self._measure(rest) > 1)

        word = self._apply_rule_list(word, [(suffix, "", is_long) for suffix in _STEP_4])
        word = self._apply_rule_list(word, [("ment", "", is_long)])
        rules = [("ent", "", is_long), ("ion", "", lambda rest: is_long(rest) and rest[-1] in "st")]
        return str(self._apply_rule_list(word, rules))


class PerlTokenizer(Tokenizer):
    """Splits texts into stemmed words, each of which it stems only once.

    A word is a run of ASCII letters and digits, lower-cased; every other character, accented letters included,
    separates words, as it does for the script, which reads bytes.

    Args:
        exceptions: base forms by irregular form (mice: mouse), for words that are not to be stemmed.
    """

    def __init__(self, exceptions: Mapping[str, str]) -> None:
        stemmer = PerlStemmer()

        def normalize(word: str) -> str:
            word = word.lower()
            if len(word) <= UNSTEMMED:
                return word
            return exceptions[word] if word in exceptions else str(stemmer.stem(word))

        self.normalize = lru_cache(maxsize=1 << 18)(normalize)
        """Returns the base form or the stem of a word."""

    def tokenize(self, text: str) -> list[str]:
        """Return the stemmed words of a text, in their order."""
        return [self.normalize(word) for word in _WORD.findall(text)]
