"""``lmfusion check-data``; damage at random: unit/fuzz/test_other_files.py."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.data.huffman import HuffmanCodeBuilder, HuffmanMMapIndexedDatasetBuilder
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.text.check_data import Text, check_folder


def binarize(prefix: Path, sentences: int, last: int = 6) -> None:
    builder = MMapIndexedDatasetBuilder(f"{prefix}.bin")
    for _ in range(sentences):
        builder.add_item(torch.tensor([4, 5, last, 2]))
    builder.finalize(f"{prefix}.idx")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A bitext of seven and six words (11 and 10 symbols), and a second part of its training text."""
    for language, words in (("en", "abcdefg"), ("de", "abcdef")):
        dictionary = Dictionary()
        for word in words:
            dictionary.add_symbol(word)
        dictionary.save(str(tmp_path / f"dict.{language}.txt"))
        for split, sentences in (("train", 3), ("train1", 2), ("valid", 1)):
            binarize(tmp_path / f"{split}.en-de.{language}", sentences)
    return tmp_path


def test_whole_texts_are_counted(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_folder(folder) == [
        Text(f"{split}.en-de.{language}", f"dict.{language}.txt", sentences, 4 * sentences)
        for split, sentences in (("train", 3), ("train1", 2), ("valid", 1))
        for language in ("de", "en")
    ]
    assert cli.main(["check-data", str(folder)]) == 0
    assert "train.en-de.en: 3 sentences, 12 tokens of dict.en.txt" in capsys.readouterr().out


def test_sides_of_different_length_are_no_pairs(folder: Path) -> None:
    binarize(folder / "train.en-de.en", 5)
    with pytest.raises(InputError, match=r"train\.en-de\.de has 3 sentences and train\.en-de\.en 5"):
        check_folder(folder)


def test_a_side_alone_is_a_text(folder: Path) -> None:
    """As fairseq-preprocess --only-source makes it of text that is to be translated."""
    for path in folder.glob("valid.en-de.de.*"):
        path.unlink()
    assert len(check_folder(folder)) == 5


@pytest.mark.parametrize("ending", [".idx", ".bin"])
def test_a_file_that_is_missing_is_noticed_by_the_other(folder: Path, ending: str) -> None:
    (folder / f"train.en-de.de{ending}").unlink()
    with pytest.raises(InputError, match=rf"train\.en-de\.de\{ending}"):
        check_folder(folder)


def test_a_language_models_text_has_a_dictionary_without_a_language(folder: Path) -> None:
    (folder / "dict.en.txt").rename(folder / "dict.txt")
    for path in folder.glob("*-de.*"):
        path.unlink()
    binarize(folder / "train", 5)
    assert check_folder(folder) == [Text("train", "dict.txt", 5, 20)]


def test_a_text_that_is_cut_is_named(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = folder / "train1.en-de.de.bin"
    data.write_bytes(data.read_bytes()[:-2])
    assert cli.main(["check-data", str(folder)]) == 2
    assert "train1.en-de.de.bin is not as long as train1.en-de.de.idx says" in capsys.readouterr().err
    data.unlink()
    with pytest.raises(InputError, match=r"train1\.en-de\.de\.bin is not as long"):
        check_folder(folder)


def test_a_token_beyond_its_own_dictionary_is_named(folder: Path) -> None:
    binarize(folder / "valid.en-de.en", 1, last=10)
    check_folder(folder)
    binarize(folder / "valid.en-de.de", 1, last=10)
    with pytest.raises(InputError, match=r"valid\.en-de\.de\.bin has a token of number 10, .* has 10 symbols"):
        check_folder(folder)


def test_what_cannot_be_checked_is_refused(folder: Path) -> None:
    binarize(folder / "test.en-de.en", 0)
    with pytest.raises(InputError, match=r"test\.en-de\.en\.idx has no sentence"):
        check_folder(folder)
    codes = HuffmanCodeBuilder()
    codes.add_symbols("a", "b")
    with HuffmanMMapIndexedDatasetBuilder(str(folder / "test.en-de.en"), codes.build_code()) as builder:
        builder.add_item(["a", "b", "a"])
    with pytest.raises(InputError, match=r"test\.en-de\.en\.idx is cut or damaged, or of another format"):
        check_folder(folder)
    for path in folder.glob("test.*"):
        path.unlink()
    (folder / "dict.de.txt").unlink()
    with pytest.raises(InputError, match=r"dict\.de\.txt does not exist"):
        check_folder(folder)
    with pytest.raises(InputError, match="has no binarized text"):
        check_folder(folder / "nowhere")
