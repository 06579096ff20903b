"""ROUGE of 9,542 made pairs of texts, to the last digit, against the figures of our own stemmer and subsequences.

That code, which rouge-score has replaced, had the Perl script's figures for every pair it was compared on. Its results
for these pairs lie in rouge-1.5.5/made_pairs.json as one hash for every hundred pairs. Written once, at the last commit
with that code, by: python tests/unit/scoring/test_rouge_made_pairs.py rouge-1.5.5/made_pairs.json
"""

from __future__ import annotations

import hashlib
import json
import random
import sys
from collections.abc import Callable, Iterator
from dataclasses import astuple
from itertools import islice
from pathlib import Path

import pytest

from lmfusion.scoring import rouge

FROZEN = Path(__file__).parent / "rouge-1.5.5" / "made_pairs.json"
BLOCK = 100

SUFFIXES = (
    "s es sses ies ss eed ed ing ated bled ized y ational tional enci anci izer bli abli alli entli eli ousli ization "
    "ation ator alism iveness fulness ousness aliti iviti biliti logi ology icate ative alize iciti ical ful ness al "
    "ance ence er ic able ible ant ement ment ent sion tion ion ou ism ate iti ous ive ize e ll le yed ying"
).split()
ODDITIES = (
    "don't vis-à-vis naïve Kelvin \u212a İstanbul ıı Straße STRASSE １２３ 日本語 e\u0301tude co\u00a0op "
    "zero\u200bwidth 3.14 1,000 1980s mp3s 2nd 90ies ipv6 snake_case UPPER CamelCase e.g. U.S.A. e-mail well-being "
    "... -- $5 100% <b> & © yyyed eyyyed sayyid ayyying 11ed a11ing 22y x--y 'quoted' (s) s' y ly ies ing ed"
).split(" ")
KINDS = {"stems": 3000, "oddities": 2000, "repeated": 2542, "long": 1000, "empty": 1000}

Pair = tuple[str, str]


def pick(generator: random.Random, items: list[str], least: int, most: int) -> list[str]:
    """Between `least` and `most` items, drawn with replacement."""
    return generator.choices(items, k=least + int(generator.random() * (most - least + 1)))


def stem(generator: random.Random) -> str:
    """A made word with up to three suffixes, which the rules of all of the stemmer's steps find."""
    base = "".join(pick(generator, list("aeiouybcdlmnrstwxz"), 0, 5))
    return base + "".join(pick(generator, SUFFIXES, 0, 3))


def text(generator: random.Random, words: list[str], sentences: int, length: int) -> str:
    """Up to so many sentences of up to so many of the words, one per line."""
    lines = [" ".join(pick(generator, words, 0, length)) for _ in range(int(generator.random() * sentences) + 1)]
    return "\n".join(lines)


def stems(generator: random.Random) -> Pair:
    words = [stem(generator) for _ in range(6)]
    words += [word + suffix for word in words for suffix in pick(generator, SUFFIXES, 1, 1)]
    return text(generator, words, 3, 8), text(generator, words, 3, 8)


def oddities(generator: random.Random) -> Pair:
    words = [*pick(generator, ODDITIES, 5, 10), stem(generator)]
    glue = generator.choices([" ", "-", "/", ", ", "\t", "\u2028"], k=1)[0]
    return text(generator, words, 3, 8).replace(" ", glue), text(generator, words, 3, 8)


def repeated(generator: random.Random) -> Pair:
    words = list("abc")
    hypothesis = text(generator, words, 4, 7)
    return "\n".join(pick(generator, hypothesis.split("\n"), 1, 4)), text(generator, words, 4, 7)


def long(generator: random.Random) -> Pair:
    words = [stem(generator) for _ in range(40)] + "the of a and to in was were".split()
    reference = text(generator, words, 5, 25)
    sentences = [line for line in reference.split("\n") if generator.random() < 0.7]
    sentences.insert(0, text(generator, words, 2, 20))
    return "\n".join(sentences), reference


def empty(generator: random.Random) -> Pair:
    words = ["", " ", "...", "\u00e9", "one", "ones"]
    return text(generator, words, 4, 2), text(generator, words, 4, 2)


def pairs() -> Iterator[tuple[str, Pair]]:
    """Every pair after its kind, the same in every run and on every version of Python."""
    makers: dict[str, Callable[[random.Random], Pair]] = {
        maker.__name__: maker for maker in (stems, oddities, repeated, long, empty)
    }
    for kind, count in KINDS.items():
        generator = random.Random(f"pairs of {kind}")
        for _ in range(count):
            yield kind, makers[kind](generator)


def figures() -> dict[str, str]:
    """A hash of recall, precision and F1 of each hundred pairs, by their number and kind."""
    markers = ("\n", None, "<q>")
    found, rest = {}, iter(pairs())
    for start in range(0, sum(KINDS.values()), BLOCK):
        block = list(islice(rest, BLOCK))
        marker = markers[start // BLOCK % len(markers)]
        texts = [[side.replace("\n", marker or "\n") for side in pair] for _, pair in block]
        scores = rouge.score([ours for ours, _ in texts], [theirs for _, theirs in texts], marker).per_pair
        numbers = [[list(astuple(score[metric])) for metric in rouge.METRICS] for score in scores]
        found[f"{start} {block[0][0]}"] = hashlib.sha256(json.dumps(numbers).encode()).hexdigest()[:16]
    return found


def test_there_are_as_many_pairs_as_were_compared() -> None:
    assert sum(1 for _ in pairs()) == 9542


@pytest.mark.slow
def test_every_kind_has_pairs_with_and_without_matches() -> None:
    for kind in KINDS:
        texts = [pair for other, pair in pairs() if other == kind][:300]
        f1 = [pair["rougeL"].f1 for pair in rouge.score(*map(list, zip(*texts))).per_pair]
        assert min(f1) == 0 < max(f1), kind
        assert len(set(f1)) > 10 or kind == "empty", kind


def test_figures_are_those_of_the_replaced_code() -> None:
    assert figures() == json.loads(FROZEN.read_text(encoding="utf-8"))


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(figures(), indent=0) + "\n", encoding="utf-8")
