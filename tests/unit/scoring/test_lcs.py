"""Longest common subsequences against all subsequences, and their union against its definition."""

from __future__ import annotations

import itertools
import random

import pytest

from lmfusion.scoring.lcs import lcs_positions, union_lcs


def is_subsequence(tokens: list[str], of: list[str]) -> bool:
    rest = iter(of)
    return all(token in rest for token in tokens)


def longest(reference: list[str], hypothesis: list[str]) -> list[tuple[int, ...]]:
    """Position tuples of every longest common subsequence, by trying all."""
    for length in range(len(reference), -1, -1):
        found = [
            positions
            for positions in itertools.combinations(range(len(reference)), length)
            if is_subsequence([reference[position] for position in positions], hypothesis)
        ]
        if found:
            return found
    raise AssertionError("the empty one is always there")


def sentence(generator: random.Random, longest: int = 7) -> list[str]:
    return generator.choices("abc", k=generator.randint(0, longest))


def test_positions_are_those_of_a_longest_common_subsequence() -> None:
    generator = random.Random(1)
    for _ in range(500):
        reference, hypothesis = sentence(generator), sentence(generator)
        assert tuple(reversed(lcs_positions(reference, hypothesis))) in longest(reference, hypothesis)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "positions"),
    [("bd", "db", [0]), ("dd", "d", [1]), ("dd", "db", [0]), ("abcd", "acbd", [3, 1, 0]), ("aba", "bab", [1, 0])],
)
def test_of_several_the_one_that_the_script_takes(reference: str, hypothesis: str, positions: list[int]) -> None:
    assert lcs_positions(list(reference), list(hypothesis)) == positions


def test_union_of_the_published_example() -> None:
    # Lin 2004, section 3.2: r = w1 w2 w3 w4 w5; c1 = w1 w2 w6 w7 w8, c2 = w1 w3 w8 w9 w5; union w1 w2 w3 w5.
    reference = ["w1 w2 w3 w4 w5".split()]
    assert union_lcs(reference, ["w1 w2 w6 w7 w8".split(), "w1 w3 w8 w9 w5".split()]) == 4


def test_union_finds_no_word_more_often_than_either_text_has_it() -> None:
    generator = random.Random(2)
    for _ in range(200):
        reference, hypothesis = ([sentence(generator) for _ in range(generator.randint(0, 4))] for _ in range(2))
        ours, theirs = ([token for part in text for token in part] for text in (hypothesis, reference))
        unigrams = sum(min(ours.count(token), theirs.count(token)) for token in "abc")
        single = max((len(longest(r, h)[0]) for r in reference for h in hypothesis), default=0)
        assert single <= union_lcs(reference, hypothesis) <= unigrams


def test_a_text_is_found_in_itself_whole() -> None:
    text = ["a b a".split(), "b".split(), "c a a".split()]
    assert union_lcs(text, text) == 7
    assert union_lcs(text, text[::-1]) == 7
