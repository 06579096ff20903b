"""The memory that building a model may take, to the byte; on the meta device, so that nothing is taken."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.budget import building_from
from lmfusion.errors import InputError

SPARE, SMALL = 2 * 1024**3, 16 * 1024
META: dict[str, Any] = {"device": "meta"}


def file_of(path: Path, size: int) -> Path:
    """A file of so many bytes, which take no place on the disk."""
    with path.open("wb") as stream:
        stream.truncate(size)
    return path


def take(limit: int, *paths: Path) -> None:
    """Refuse all but exactly ``limit`` bytes for models from these files."""
    with building_from(paths):
        torch.empty(limit, dtype=torch.uint8, **META)
    with pytest.raises(InputError, match=paths[0].name), building_from(paths):
        torch.empty(limit + 1, dtype=torch.uint8, **META)


def test_a_model_may_take_eight_times_its_file_and_two_gigabytes(tmp_path: Path) -> None:
    take(SPARE, tmp_path / "none.pt")
    take(8 * 1000 + SPARE, file_of(tmp_path / "a.pt", 1000))
    take(8 * 1300 + SPARE, tmp_path / "a.pt", file_of(tmp_path / "b.pt", 300))
    take(8 * 1000 + SPARE, tmp_path / "a.pt", tmp_path / "a.pt")  # one file


def test_the_language_models_beside_a_file_and_the_shards_of_one_count(tmp_path: Path) -> None:
    whole = file_of(tmp_path / "a.pt", 1000)
    file_of(tmp_path / "a-shard0.pt", 7)  # of no checkpoint in shards, for a.pt is there
    file_of(tmp_path / "frozen_lm.1.pt", 50)
    take(8 * 1050 + SPARE, whole)
    (tmp_path / "parts").mkdir()
    for number in range(2):
        file_of(tmp_path / "parts" / f"b-shard{number}.pt", 100)
    take(8 * 200 + SPARE, tmp_path / "parts" / "b.pt")
    file_of(tmp_path / "parts" / "frozen_lm.2.pt", 30)
    take(8 * 230 + SPARE, tmp_path / "parts" / "b.pt")


def test_the_sizes_are_told_in_gigabytes(tmp_path: Path) -> None:
    path = file_of(tmp_path / "a.pt", 1_234_000_000)
    told = r"more than 12\.0 GB, and the weights there take 1\.234 GB"  # 9.87 + 2.15
    with pytest.raises(InputError, match=told), building_from([path]):
        torch.empty(10**12, **META)


HALVES, DOUBLES = (torch.empty(10, dtype=kind, **META) for kind in (torch.float16, torch.float64))
COLUMN = torch.empty(1000, 1, **META)
MADE = {
    "bytes": (lambda: torch.empty(20_000, dtype=torch.uint8, **META), 20_000),
    "whole numbers": (lambda: torch.arange(10_000, **META), 8 * 10_000),
    "a small tensor": (lambda: torch.zeros(5, **META), SMALL),
    "without numbers": (lambda: torch.zeros(0, **META), SMALL),
    "two": (lambda: [torch.zeros(1, **META), torch.ones(SMALL // 4 + 1, **META)], SMALL + SMALL + 4),
    "repeated": (lambda: HALVES.repeat(5, 3), 2 * 10 * 5 * 3),
    "product of a column and a row": (lambda: COLUMN * DOUBLES, 8 * 1000 * 10),
    "product of a row and a column": (lambda: DOUBLES * COLUMN, 8 * 1000 * 10),
    "product with a number": (lambda: COLUMN * 2.0, 0),
    "sum": (lambda: HALVES + HALVES, 0),
}


@pytest.mark.parametrize(("make", "size"), MADE.values(), ids=MADE)
def test_what_is_made_from_sizes_or_expands_tensors_counts(make: Any, size: int, tmp_path: Path) -> None:
    """A small tensor as sixteen kilobytes, a product in numbers of the wider operand."""

    def fill(more: int) -> None:
        with building_from([tmp_path / "none.pt"]):
            make()
            torch.empty(SPARE - size + more, dtype=torch.uint8, **META)

    fill(0)
    with pytest.raises(InputError):
        fill(1)
