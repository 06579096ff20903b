"""Which binarized texts are checked before fairseq reads them; what is found in them: unit/fuzz/test_other_files.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary, data_utils
from fairseq.data.huffman import HuffmanCodeBuilder, HuffmanMMapIndexedDatasetBuilder
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from lmfusion.errors import UserError


@pytest.fixture
def dictionary() -> Dictionary:
    """Of seven words."""
    words = Dictionary()
    for word in "abcdefg":
        words.add_symbol(word)
    return words


def binarize(prefix: Path, sentences: int) -> None:
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin")
    for _ in range(sentences):
        builder.add_item(torch.tensor([4, 5, 6, 2]))
    builder.finalize(f"{prefix}.idx")


def test_all_parts_of_a_text_are_checked_where_they_are_read_together(tmp_path: Path, dictionary: Dictionary) -> None:
    train = tmp_path / "train"
    for number, name in enumerate(("train", "train1", "train2"), start=1):
        binarize(tmp_path / name, number)
    assert len(data_utils.load_indexed_dataset(str(train), dictionary, combine=True)) == 6
    last = tmp_path / "train2.bin"
    last.write_bytes(last.read_bytes()[:-2])
    assert len(data_utils.load_indexed_dataset(str(train), dictionary)) == 1
    with pytest.raises(UserError, match=r"train2\.bin is not as long as train2\.idx says"):
        data_utils.load_indexed_dataset(str(train), dictionary, combine=True)


def test_texts_in_other_formats_are_left_to_fairseq(tmp_path: Path, dictionary: Dictionary) -> None:
    codes = HuffmanCodeBuilder()
    codes.add_symbols(*dictionary.symbols)
    with HuffmanMMapIndexedDatasetBuilder(str(tmp_path / "train"), codes.build_code()) as builder:
        builder.add_item(["a", "b", "c", "a"])
    data = data_utils.load_indexed_dataset(str(tmp_path / "train"), dictionary, dataset_impl="huffman")
    assert len(data) == 1


def test_a_text_without_a_sentence_is_named(tmp_path: Path, dictionary: Dictionary) -> None:
    binarize(tmp_path / "valid", 0)
    with pytest.raises(UserError, match=r"valid\.idx has no sentence"):
        data_utils.load_indexed_dataset(str(tmp_path / "valid"), dictionary)
