"""The default number of BPE symbols: by the amount of text, within what the text can carry."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from lmfusion.text import bpe_size
from lmfusion.text.textio import DataError

ENGLISH = Counter(dict.fromkeys("abcdefghijklmnopqrstuvwxyz ABCDEFGHIJKLMNOPQRSTUVWXYZ,.", 10))


@pytest.mark.parametrize(
    ("words", "symbols"),
    [
        (40_000, 2_000),
        (299_999, 2_000),
        (300_000, 4_000),
        (2_999_999, 4_000),
        (3_000_000, 8_000),
        (10_000_000, 16_000),
        (50_000_000, 32_000),
        (10**9, 32_000),
    ],
)
def test_more_text_gets_more_symbols(words: int, symbols: int) -> None:
    assert bpe_size.size_for(words, ENGLISH) == symbols


def test_a_few_hundred_lines_get_a_symbol_for_twenty_words_but_two_for_each_letter() -> None:
    assert bpe_size.size_for(10_000, ENGLISH) == 500
    assert bpe_size.size_for(100, ENGLISH) == 2 * len(ENGLISH)


def test_letters_that_hardly_occur_do_not_count() -> None:
    letters = Counter({chr(0x4E00 + number): 200 for number in range(300)})
    rare = Counter({chr(0x6E00 + number): 1 for number in range(5)})
    assert bpe_size.size_for(100, letters) == 600
    assert bpe_size.size_for(100, letters + rare) == 600, "5 of 60,005 are fewer than a ten-thousandth"
    assert bpe_size.size_for(100, letters + rare + rare) > 600


def test_a_rarer_letter_that_occurs_twice_has_one_symbol() -> None:
    """a and b are all but a ten-thousandth of the text, so two symbols each; of the others only d is counted."""
    assert bpe_size.size_for(20, Counter({"a": 40_000, "b": 40_000, "c": 1, "d": 2})) == 2 * 2 + 1


def test_a_line_has_a_word_more_than_spaces(tmp_path: Path) -> None:
    """1,000 lines of one letter are 1,000 words, and of three 3,000."""
    for line, size in (("a", 50), ("a b c", 150)):
        (tmp_path / "text").write_text(f"{line}\n" * 1000, encoding="utf-8")
        assert bpe_size.choose([tmp_path / "text"]) == size


def test_text_without_spaces_is_counted_by_its_letters(tmp_path: Path) -> None:
    spaced, joined = tmp_path / "spaced", tmp_path / "joined"
    spaced.write_text("five5 " * 12_000 + "\n", encoding="utf-8")
    joined.write_text("five5x" * 12_000 + "\n", encoding="utf-8")
    assert bpe_size.choose([joined]) == bpe_size.choose([spaced]) == 600
    assert bpe_size.choose([spaced, joined]) == 1200
    with pytest.raises(DataError, match="no such file"):
        bpe_size.choose([tmp_path / "absent"])
