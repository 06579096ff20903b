"""moses.py: sacremoses' output, whatever the text."""

from __future__ import annotations

import random

import pytest
import sacremoses

from lmfusion.text import moses

CHARACTERS = "aAzZ09.,'`\"- \t\u00a0\u2028éß…·«»#%&$€@/()[]<>|_中ÐIM\x1f\x00"
WORDS = (
    "U.S. e.g. No. Nr. z.B. 1. 12. Jan. DOTMULTI a. A. ... .. 's don't .' 5,300 x,y . 3. art. dr. St. Abs. ٣ ½ 'tis."
)
OPTIONS = (
    {"return_str": True, "aggressive_dash_splits": False, "escape": False},
    {"return_str": True, "aggressive_dash_splits": True, "escape": True},
)


def made_up_sentence(rng: random.Random) -> str:
    """Words that are hard to tokenize, between random characters."""

    def word() -> str:
        letters = "".join(rng.choices(CHARACTERS, k=rng.randint(1, 5)))
        return rng.choice([letters, rng.choice(WORDS.split())])

    return " ".join(word() for _ in range(rng.randint(0, 8)))


@pytest.mark.parametrize("lang", ["en", "de", "tr", "fr"])
def test_the_tokens_are_those_of_sacremoses(lang: str) -> None:
    rng = random.Random(1)
    ours, theirs = moses.MosesTokenizer(lang), sacremoses.MosesTokenizer(lang)
    for sentence in [made_up_sentence(rng) for _ in range(50)]:
        for options in OPTIONS:
            assert ours.tokenize(sentence, **options) == theirs.tokenize(sentence, **options), sentence
