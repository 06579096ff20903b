"""What looks wrong in a text: each guess is made where it should be and not elsewhere."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from lmfusion.text import suspicions, textio

CORPUS = Path(__file__).resolve().parents[3] / "data-prep/debian/en-de"


@pytest.fixture(scope="module")
def sample() -> list[tuple[str, str]]:
    """Real English and German sentences."""
    sides = (textio.read_lines(CORPUS / f"test.{language}.xz") for language in ("en", "de"))
    return list(zip(*sides))


def guess(sample: list[tuple[str, str]], sides: tuple[str, str] = ("en", "de")) -> str:
    return "\n".join(suspicions.pairs(sample, sides, one_language=False))


def test_good_pairs_raise_no_suspicion(sample: list[tuple[str, str]]) -> None:
    assert guess(sample) == ""
    assert guess(sample, ("xx", "yy")) == ""
    lengths = np.array([[len(source), len(target)] for source, target in sample])
    assert suspicions.alignment(lengths) == []


@pytest.mark.parametrize("sides", [("de", "en"), ("de", "xx"), ("yy", "en"), ("de_DE", "en-GB")])
def test_swapped_languages_are_noticed_by_their_words(sample: list[tuple[str, str]], sides: tuple[str, str]) -> None:
    assert "swapped" in guess(sample, sides)


def test_swapped_scripts_are_noticed() -> None:
    pairs = [("мама мыла раму", "mother washed the frame")] * 30
    assert guess(pairs, ("ru", "en")) == ""
    assert "swapped" in guess(pairs, ("en", "ru"))


def test_untranslated_pairs_are_counted(sample: list[tuple[str, str]]) -> None:
    mixed = [(source, source.upper() if number % 2 else target) for number, (source, target) in enumerate(sample)]
    assert "50%" in guess(mixed)
    assert "swapped" not in guess([(source, source) for source, _ in sample])


def test_tokenized_and_cut_text_is_noticed(sample: list[tuple[str, str]]) -> None:
    tokenized = [(source, target.replace(".", " .").replace(",", " ,")) for source, target in sample]
    assert "de side looks tokenized" in guess(tokenized)
    assert "en side" not in guess(tokenized)
    assert "pieces" in guess([(source.replace("e", "e@@ "), target) for source, target in sample])


def test_documents_are_noticed_where_sentences_are_expected(sample: list[tuple[str, str]]) -> None:
    documents = [(" ".join([source] * 40), target) for source, target in sample]
    assert "words" in guess(documents)
    assert suspicions.pairs(documents, ("text", "summary"), one_language=True) == []
    swapped = [(target, source) for source, target in documents]
    assert "longer" in "".join(suspicions.pairs(swapped, ("text", "summary"), one_language=True))


def test_lengths_say_from_where_lines_no_longer_belong_together(sample: list[tuple[str, str]]) -> None:
    lengths = np.array([[len(source), len(target)] for source, target in sample * 3])
    shifted = lengths.copy()
    shifted[1600:, 1] = np.roll(shifted[1600:, 1], 1)
    assert suspicions.misaligned_from(shifted) == 1600
    shuffled = lengths.copy()
    shuffled[:, 1] = random.Random(1).sample(lengths[:, 1].tolist(), len(lengths))
    assert suspicions.misaligned_from(shuffled) == 0
    assert suspicions.misaligned_from(np.full((1000, 2), 20)) is None
    assert suspicions.misaligned_from(np.zeros((0, 2), int)) is None


def test_other_text_is_compared_with_both_sides(sample: list[tuple[str, str]]) -> None:
    half = len(sample) // 2
    profiles = {
        side: [suspicions.profile(pair[number] for pair in part) for part in (sample[:half], sample[half:])]
        for number, side in enumerate(("xx", "yy"))
    }
    sides = {side: first for side, (first, _) in profiles.items()}
    right = {side: second for side, (_, second) in profiles.items()}
    assert suspicions.swapped(sides, right, "--test") == []
    assert suspicions.swapped(sides, {"xx": right["xx"]}, "plain.xx") == []
    assert suspicions.swapped(sides, {"xx": right["yy"]}, "plain.xx")
    assert suspicions.swapped(sides, {"xx": right["yy"], "yy": right["xx"]}, "--test")
    assert suspicions.swapped(sides, {"xx": right["xx"], "yy": right["xx"]}, "--test") == [], "one side fits"
