"""How much text there is, read from prepared folders or made up."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary, data_utils, indexed_dataset

from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.planning.text import Text, binarized_bytes, made_up, prepared


def binarize(folder: Path, **lengths: list[int]) -> Path:
    """A folder with texts of sentences of these lengths; of a name, the dots are two underscores."""
    folder.mkdir(exist_ok=True)
    for name, sentences in lengths.items():
        prefix = folder / name.replace("__", ".").replace("_", "-")
        builder = indexed_dataset.make_builder(f"{prefix}.bin", "mmap", vocab_size=50)
        for length in sentences:
            builder.add_item(torch.full((length,), 5))
        builder.finalize(f"{prefix}.idx")
    return folder


def test_pairs_are_as_long_as_their_target_side(tmp_path: Path) -> None:
    folder = binarize(tmp_path / "pairs", train__en_de__de=[3, 4], train__en_de__en=[7, 9], valid__en_de__de=[5])
    assert prepared(str(folder)) == Text(str(folder), ("en", "de"), 7, 2, 2, 1)
    folder = binarize(tmp_path / "other", train__de_en__de=[3, 4], train__de_en__en=[7, 9])
    assert prepared(str(folder)) == Text(str(folder), ("de", "en"), 16, 2, 2, 1)
    assert prepared(str(folder), "en") == prepared(str(folder), "fr") == prepared(str(folder))


def test_pairs_translated_the_other_way_are_as_long_as_the_other_side(tmp_path: Path) -> None:
    folder = binarize(tmp_path / "pairs", train__en_de__de=[3, 4], train__en_de__en=[7, 9])
    assert prepared(str(folder), "en") == Text(str(folder), ("de", "en"), 16, 2, 2, 1)


def test_text_of_one_language_is_that_of_all_shards(tmp_path: Path) -> None:
    data = f"{binarize(tmp_path / 'a', train=[3, 4])}:{binarize(tmp_path / 'b', train=[5])}"
    assert prepared(data) == Text(data, None, 12, 3, 1, 2)


def test_parts_that_fairseq_reads_as_one_text_are_counted_up_to_a_gap(tmp_path: Path) -> None:
    """It reads train, train1, train2 … until one is missing."""
    data = str(binarize(tmp_path / "a", train=[3, 4], train1=[5], train2=[6, 7], train4=[100]))
    assert prepared(data) == Text(data, None, 25, 5, 1, 1)
    pairs = binarize(tmp_path / "b", train__en_de__de=[3, 4], train__en_de__en=[7, 9])
    binarize(pairs, train1__en_de__de=[5], train1__en_de__en=[11])
    assert prepared(str(pairs)) == Text(str(pairs), ("en", "de"), 12, 3, 2, 1)
    assert prepared(str(pairs), "en") == Text(str(pairs), ("de", "en"), 27, 3, 2, 1)
    loaded = data_utils.load_indexed_dataset(f"{data}/train", None, "mmap", combine=True)
    assert (len(loaded), int(loaded.sizes.sum())) == (5, 25)


def test_a_text_that_fairseq_would_not_find_is_none(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no training text"):
        prepared(str(binarize(tmp_path / "a", train1=[3])))


@pytest.mark.parametrize("data", ["", ":"])
def test_no_folder_is_refused(data: str) -> None:
    with pytest.raises(InputError, match="--data"):
        prepared(data)


def test_a_text_without_its_other_half_is_named(tmp_path: Path) -> None:
    """As fairseq-preprocess --only-source leaves it, given languages."""
    with pytest.raises(InputError, match=r"train\.en-None\.None\.idx"):
        prepared(str(binarize(tmp_path / "a", train__en_None__en=[3])))
    (binarize(tmp_path / "b", train=[3]) / "train.bin").unlink()
    with pytest.raises(InputError, match="no training text"):
        prepared(str(tmp_path / "b"))


DAMAGED = {
    "empty": b"",
    "cut": b"MMIDIDX\0\0" + struct.pack("<QB", 1, 8)[:6],
    "too few": b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 10**12, 10**12),
    "no sentences": b"MMIDIDX\0\0" + struct.pack("<QBQQ", 1, 8, 0, 0),
    "of another format": b"TNTIDX\0\0" + struct.pack("<QQQQ", 1, 8, 1, 1) + bytes(50),
    "text": b"no index of fairseq's at all, but something else that is longer than a header" * 9,
}


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_an_index_that_is_none_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str], content: bytes) -> None:
    folder = binarize(tmp_path / "data", train=[3])
    (folder / "train.idx").write_bytes(content)
    assert cli.main(["plan", "--data", str(folder), "--", "--arch", "transformer_lm"]) == 2
    error = capsys.readouterr().err
    assert str(folder / "train.idx") in error
    assert error.count("\n") == 1


def test_what_is_made_up_has_the_size_that_was_asked_for(tmp_path: Path) -> None:
    """A side with a language model in a file has the symbols of that."""
    own = [*"<s> <pad> </s> <unk>".split(), "one", "two"]
    text = made_up(tmp_path, 12, 65, 10, {"src": own})
    assert text == Text(str(tmp_path), ("src", "tgt"), 65, 6, 2, 1)
    sides = {side: Dictionary.load(str(tmp_path / f"dict.{side}.txt")) for side in ("src", "tgt")}
    assert sides["src"].symbols == own
    assert len(sides["tgt"]) == len(Dictionary.load(str(tmp_path / "dict.txt"))) == 12
    assert made_up(tmp_path, 12, 3, 10, {}).sentences == 1
    assert made_up(tmp_path, 5, None, 10, {}).sentences is None
    with pytest.raises(InputError, match="--types 4"):
        made_up(tmp_path, 4, None, 10, {})


@pytest.mark.parametrize(("types", "size"), [(65_000, 2), (65_499, 2), (65_500, 4), (70_000, 4)])
def test_symbols_take_as_many_bytes_as_fairseq_gives_them(types: int, size: int) -> None:
    assert indexed_dataset.best_fitting_int_dtype(types)().itemsize == size
    given: dict[str, Any] = {"folder": "x", "languages": None, "sides": 1, "shards": 1}
    assert binarized_bytes(Text(tokens=700, sentences=50, **given), types, 2) == 2 * (700 * size + 50 * 12)
    assert binarized_bytes(Text(tokens=None, sentences=None, **given), types, 2) is None
