"""The file of a frozen language model: its name is its content, and it is neither written nor read without need."""

from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.frozen_file import digest, externalize, inline
from lmfusion.checkpoint.reading import read_file


def test_the_digest_is_that_of_names_types_shapes_and_bytes() -> None:
    """As it stands in checkpoints of earlier versions."""
    text = (
        b"a\ntorch.float32\n(2,)\n" + struct.pack("<2f", 1.5, -2.0) + b"b\ntorch.int64\n(1, 1)\n" + struct.pack("<q", 7)
    )
    weights = {"b": torch.tensor([[7]]), "a": torch.tensor([1.5, 9.0, -2.0, 9.0])[::2]}
    assert digest(weights) == hashlib.sha256(text).hexdigest()


@pytest.mark.parametrize(
    "other",
    [
        {"v": torch.zeros(2, 3)},
        {"w": torch.zeros(3, 2)},
        {"w": torch.zeros(2, 3, dtype=torch.int32)},  # the same bytes
        {"w": torch.zeros(2, 3), "x": torch.zeros(0)},
    ],
    ids=["name", "shape", "type", "one more"],
)
def test_what_differs_in_anything_has_another_digest(other: dict[str, torch.Tensor]) -> None:
    assert digest({"w": torch.zeros(2, 3)}) != digest(other)


def test_a_file_that_is_there_is_read_once_and_again_when_it_changes(tmp_path: Path) -> None:
    """A run refers to it in every checkpoint, and it may be large."""
    state = {"model": {"lm.w": torch.arange(4.0), "v": torch.ones(2)}}
    read: list[Path] = []

    def reading(path: Path) -> dict[str, Any]:
        read.append(path)
        return read_file(path)

    def save() -> Path:
        (reference,) = externalize(state, ["lm."], tmp_path, read=reading)["frozen_lms"].values()
        return tmp_path / reference["file"]

    file = save()
    assert read == []
    written = file.stat().st_mtime_ns
    for _ in range(3):
        assert save() == file
    assert read == [file]
    assert file.stat().st_mtime_ns == written
    whole = file.read_bytes()
    file.write_bytes(whole.replace(struct.pack("<f", 3.0), struct.pack("<f", 4.0)))  # of which only the time tells
    assert file.read_bytes() != whole
    save()
    assert read == [file, file]
    assert torch.equal(read_file(file)["model"]["w"], state["model"]["lm.w"])


def test_a_file_of_this_name_with_other_weights_is_written_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Whole, and not what all checkpoints to come would say of it."""
    state = {"model": {"lm.w": torch.arange(5.0)}}
    file = tmp_path / f"frozen_lm.{digest({'w': torch.arange(5.0)})[:16]}.pt"
    torch.save({"model": {"w": torch.zeros(5)}}, file)
    found = externalize(state, ["lm."], tmp_path, read=read_file)
    assert found["frozen_lms"]["lm."]["file"] == file.name
    assert torch.equal(read_file(file)["model"]["w"], torch.arange(5.0))
    assert file.name in caplog.text


def test_averages_of_frozen_weights_are_in_the_file_alone_too(tmp_path: Path) -> None:
    """fairseq's --store-ema keeps an average of every weight, in half precision two of them."""
    frozen = {"lm.w": torch.arange(4.0).half(), "lm.n": torch.tensor([7])}
    average = {**frozen, "v": torch.ones(2).half()}
    full = {name: value.float() if value.is_floating_point() else value for name, value in average.items()}
    extra = {"ema": average, "ema_fp32_params": full, "epoch": 3}
    state = {"model": {**frozen, "v": torch.zeros(2).half()}, "extra_state": extra}
    written = externalize(state, ["lm."], tmp_path, read=read_file)
    assert [list(written["extra_state"][name]) for name in ("ema", "ema_fp32_params")] == [["v"], ["v"]]
    found = inline(written, tmp_path / "checkpoint.pt", read=read_file)["extra_state"]
    assert found["epoch"] == 3
    for name, expected in (("ema", average), ("ema_fp32_params", full)):
        assert found[name].keys() == expected.keys()
        assert all(torch.equal(value, found[name][key]) for key, value in expected.items())
        assert all(value.dtype == found[name][key].dtype for key, value in expected.items())


def test_an_average_that_is_another_than_the_weight_stays_where_it_is(tmp_path: Path) -> None:
    """As that of a training whose frozen language model was trained before."""
    extra = {"ema": {"lm.w": torch.ones(4)}}
    state = {"model": {"lm.w": torch.zeros(4)}, "extra_state": extra}
    written = externalize(state, ["lm."], tmp_path, read=read_file)
    found = inline(written, tmp_path / "checkpoint.pt", read=read_file)
    assert torch.equal(found["extra_state"]["ema"]["lm.w"], torch.ones(4))
    assert torch.equal(found["model"]["lm.w"], torch.zeros(4))
