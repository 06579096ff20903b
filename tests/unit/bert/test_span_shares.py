"""Shares of the rows that BERT is trained on, on texts where each choice can be told from the others."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary

from lmfusion.lm.bert import RANDOM
from lmfusion.training.documents import Documents
from lmfusion.training.span_pairs import SpanPairs


@pytest.fixture(scope="module")
def dictionary() -> Dictionary:
    made = Dictionary()
    for symbol in (*(f"w{number}" for number in range(50)), "<mask>"):
        made.add_symbol(symbol)
    return made


def text_of(documents: int, lines: int, pieces: int) -> Documents:
    """Documents that are all as long, an empty line between two of them."""
    line = torch.tensor([*(4 + number % 50 for number in range(pieces)), 2])
    rows = ([line] * lines + [torch.tensor([2])]) * documents
    return Documents(rows, np.array([len(row) for row in rows]), "text")


def test_a_tenth_of_the_rows_is_shorter_than_the_room(dictionary: Dictionary) -> None:
    """Of one endless line, where no other row ends early; a length is drawn from 2 to 62 pieces."""
    rows = SpanPairs(text_of(1, 1, 150_000), dictionary, length=64, pairs=False, seed=1)
    lengths = rows.rows[:-1, 1] - rows.rows[:-1, 0]
    shorter = lengths[lengths < 62]
    assert lengths.max() == 62
    assert len(shorter) / len(lengths) == pytest.approx(0.1 * 60 / 61, abs=0.02)
    assert shorter.min() < 6
    assert shorter.max() > 57
    assert shorter.mean() == pytest.approx((2 + 61) / 2, abs=4)


def test_a_second_span_of_elsewhere_begins_as_the_one_that_it_replaces_would(dictionary: Dictionary) -> None:
    """Where a line does if the first span ends with one, else anywhere: its beginning must not tell its label."""
    for text, at_line in ((text_of(150, 12, 9), True), (text_of(150, 1, 120), False)):
        rows = SpanPairs(text, dictionary, length=40, pairs=True, seed=1)
        lines = set(text.line_starts.tolist())
        found = [(cut in lines, second in lines) for _, cut, second, _, label in rows.rows.tolist() if label == RANDOM]
        begins = [second for cut, second in found if cut == at_line]
        assert len(begins) > 100
        assert np.mean(begins) == 1 if at_line else np.mean(begins) < 0.1


def test_of_short_rows_too_15_percent_are_chosen(dictionary: Dictionary) -> None:
    """Rows of 5 pieces: three of four have one that is to be predicted, and none has two."""
    rows = SpanPairs(text_of(600, 1, 5), dictionary, length=30, pairs=False, seed=1)
    chosen = np.array([int(rows[number]["target"].ne(dictionary.pad()).sum()) for number in range(len(rows))])
    whole = rows.sizes == 6  # without <s>, and with </s>
    assert whole.sum() > 500
    assert set(chosen[whole].tolist()) == {0, 1}
    assert chosen[whole].mean() == pytest.approx(0.75, abs=0.06)
