"""Plain text is split into train and valid: no line in both, also where little text is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.text import mono
from lmfusion.text.textio import DataError


def written(
    folder: Path, lines: list[str], seed: int = 1, held_out: tuple[str, ...] = ()
) -> tuple[list[list[str]], list[int]]:
    """The lines of train and of valid, and the four numbers that are returned."""
    files = folder / "train", folder / "valid"
    counts = mono.write(lambda: iter(lines), mono.hashes(held_out), seed, *files)
    return [path.read_text(encoding="utf-8").splitlines() for path in files], list(counts)


@pytest.mark.parametrize("seed", range(5))
def test_of_two_equal_lines_one_is_kept_and_lines_of_other_capitals_stay_together(tmp_path: Path, seed: int) -> None:
    lines = ["one", "two", "", "three", "two", "One", "held", "one", "four"]
    (train, valid), counts = written(tmp_path, lines, seed, ("HELD",))
    assert sorted(train + valid) == sorted(["one", "One", "two", "three", "four"])
    assert not {line.casefold() for line in train} & {line.casefold() for line in valid}
    assert counts == [len(train), len(valid), 2, 1]


@pytest.mark.parametrize(("lines", "valid"), [(2, 1), (3, 1), (8, 2), (400, 100), (500, 100)])
def test_valid_has_no_more_than_a_quarter_of_little_text(tmp_path: Path, lines: int, valid: int) -> None:
    _, counts = written(tmp_path, [f"line {number}" for number in range(lines)])
    assert counts == [lines - valid, valid, 0, 0]


@pytest.mark.parametrize("lines", [[], ["one", "one"], ["one", "", "held"], ["one", "One"]])
def test_less_than_two_lines_that_differ_in_more_than_capitals_are_refused(tmp_path: Path, lines: list[str]) -> None:
    with pytest.raises(DataError, match="train"):
        written(tmp_path, lines, held_out=("held",))
    assert not list(tmp_path.iterdir())
