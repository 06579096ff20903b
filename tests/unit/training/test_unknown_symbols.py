"""The share of unknown symbols, counted by hand and in samples; a run with more than a half of them is refused."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, LanguagePairDataset, ListDataset, MonolingualDataset

from lmfusion.errors import InputError
from lmfusion.training.unknown_symbols import check_unknown_symbols, unknown_share

PAD, EOS, UNK = 1, 2, 3


def texts(*rows: list[int]) -> ListDataset:
    return ListDataset([torch.tensor(row) for row in rows], [len(row) for row in rows])


def pairs(dictionary: Dictionary, source: ListDataset, target: ListDataset) -> Any:
    """A task of translation with these as its training set."""
    data = LanguagePairDataset(source, source.sizes, dictionary, target, target.sizes, dictionary)
    return SimpleNamespace(datasets={"train": data}, cfg=SimpleNamespace(source_lang="en", target_lang="de"))


def test_neither_the_end_of_a_sentence_nor_padding_is_a_symbol(dictionary: Dictionary) -> None:
    assert unknown_share(texts([5, UNK, 6, EOS], [UNK, EOS, PAD, PAD]), dictionary) == 2 / 4
    assert unknown_share(texts([EOS]), dictionary) == 0.0


def test_of_many_sentences_the_same_sample_is_taken_every_time(dictionary: Dictionary) -> None:
    """1,000 of 5,000 sentences, of which 30% are unknown: within four standard deviations, 5.8%, and not exactly."""
    words = np.where(np.random.default_rng(7).random(5000) < 0.3, UNK, 5)
    rows = texts(*([int(word), EOS] for word in words))
    shares = [unknown_share(rows, dictionary, sentences=1000) for _ in range(2)]
    assert shares[0] == shares[1] == pytest.approx((words == UNK).mean(), abs=0.058)
    assert shares[0] != (words == UNK).mean()


def test_every_side_is_told_and_more_than_half_is_refused(
    dictionary: Dictionary, caplog: pytest.LogCaptureFixture
) -> None:
    half = texts([5, UNK, EOS], [6, UNK, EOS])
    with caplog.at_level(logging.INFO):
        check_unknown_symbols(pairs(dictionary, texts([5, 6, EOS], [5, UNK, EOS]), half))
    assert [line.rpartition(" in ")[2] for line in caplog.messages] == [
        "train, en (source): 25.00%",
        "train, de (target): 50.00%",
    ]
    with pytest.raises(InputError, match=r"66\.7% .* train, de \(target\)"):
        check_unknown_symbols(pairs(dictionary, half, texts([UNK, UNK, 5, EOS], [EOS])))


def test_text_of_a_language_model(dictionary: Dictionary) -> None:
    rows = texts([UNK, 5, UNK, EOS])
    data = MonolingualDataset(rows, rows.sizes, dictionary)
    with pytest.raises(InputError, match=r"66\.7% .* valid, text"):
        check_unknown_symbols(SimpleNamespace(datasets={"valid": data}))
