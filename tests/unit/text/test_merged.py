"""Binarized text of several folders in one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary, data_utils
from fairseq.data.indexed_dataset import MMapIndexedDatasetBuilder

from lmfusion.errors import InputError
from lmfusion.text.merged import merge

SENTENCES = {"en": [[4, 5, 2], [6, 2]], "de": [[5, 5, 5, 2], [4, 2], [6, 4, 2]]}


def binarized(folder: Path, sentences: list[list[int]], dtype: type = np.uint16, words: str = "abc") -> Path:
    folder.mkdir()
    (folder / "dict.txt").write_text("".join(f"{word} 1\n" for word in words), encoding="utf-8")
    for split in ("train", "valid"):
        builder = MMapIndexedDatasetBuilder(str(folder / f"{split}.bin"), dtype=dtype)
        for sentence in sentences if split == "train" else sentences[:1]:
            builder.add_item(torch.tensor(sentence))
        builder.finalize(str(folder / f"{split}.idx"))
    return folder


def test_all_sentences_are_there_in_order(tmp_path: Path) -> None:
    folders = [binarized(tmp_path / lang, sentences) for lang, sentences in SENTENCES.items()]
    assert merge(folders, tmp_path / "both") == {"train": 5, "valid": 2}
    dictionary = Dictionary.load(str(tmp_path / "both" / "dict.txt"))
    assert dictionary.symbols[4:] == list("abc")
    found = {
        split: [ids.tolist() for ids in data_utils.load_indexed_dataset(str(tmp_path / "both" / split), dictionary)]
        for split in ("train", "valid")
    }
    assert found == {"train": SENTENCES["en"] + SENTENCES["de"], "valid": [SENTENCES["en"][0], SENTENCES["de"][0]]}


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ({"words": "acb"}, "other symbols"),
        ({"dtype": np.int32}, "binarize it again"),
        (None, "no such text"),
    ],
)
def test_what_does_not_go_together_is_refused_and_nothing_is_left(
    tmp_path: Path, other: dict[str, object] | None, message: str
) -> None:
    folders = [binarized(tmp_path / "en", SENTENCES["en"]), binarized(tmp_path / "de", SENTENCES["de"], **other or {})]  # type: ignore[arg-type]
    if other is None:
        (folders[1] / "valid.bin").unlink()
    with pytest.raises(InputError, match=message):
        merge(folders, tmp_path / "both")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["de", "en"]
