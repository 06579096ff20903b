"""torch writes check sums into its files and does not look at them: a flipped bit would be a silently wrong weight."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.files import damage
from lmfusion.errors import InputError
from lmfusion.lm.loading import load_lm


def test_a_flipped_bit_in_a_weight_is_noticed(make_cloze: Any, save_lm: Any) -> None:
    path = save_lm(make_cloze())
    content, name = path.read_bytes(), "decoder.join.out_proj.bias"
    weight = torch.load(path, weights_only=True)["model"][name]
    place = content.find(weight.numpy().tobytes())
    for byte in (0, 17, 63):
        flipped = bytearray(content)
        flipped[place + byte] ^= 1
        path.write_bytes(flipped)
        assert not torch.equal(torch.load(path, weights_only=True)["model"][name], weight)  # torch notices nothing
        with pytest.raises(InputError, match=r"lm\.pt cannot be read .* damaged \(the check sum of lm/data/\d+ does"):
            load_lm(path)
    path.write_bytes(content)
    load_lm(path)


def test_nothing_is_unpacked_that_torch_never_packs(tmp_path: Path) -> None:
    """A megabyte that unpacks to a terabyte would keep a reader busy for a day."""
    with zipfile.ZipFile(tmp_path / "bomb.pt", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("bomb/data.pkl", b"\0" * 10_000_000)
    assert damage(tmp_path / "bomb.pt") == "its entries are compressed"
    with zipfile.ZipFile(tmp_path / "overlap.pt", "w") as archive:
        archive.writestr("overlap/data.pkl", b"\0" * 10_000)
        for number in range(9):  # further names for the same bytes
            entry = zipfile.ZipInfo(f"overlap/{number}")
            entry.file_size, entry.compress_size, entry.header_offset = 10_000, 10_000, 0
            entry.CRC = archive.filelist[0].CRC
            archive.filelist.append(entry)
    assert damage(tmp_path / "overlap.pt") == "its entries overlap"
