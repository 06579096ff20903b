"""``lmfusion recipes``: all of the scripts, or nothing of them."""

from __future__ import annotations

import resource
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.commands import recipes
from lmfusion.errors import describe_os_error
from lmfusion.text import textio


@contextmanager
def files_at_most(size: int) -> Iterator[None]:
    """Let no file grow beyond so many bytes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_a_full_disk_leaves_no_part_of_the_recipes_and_names_the_disks_file(tmp_path: Path) -> None:
    out = tmp_path / "study"
    with pytest.raises(OSError, match=str(tmp_path)) as raised, files_at_most(1000):
        recipes.run(Namespace(out=out))
    assert str(tmp_path) in describe_os_error(raised.value)
    assert str(tmp_path) in textio.describe_os_error(raised.value)
    assert list(tmp_path.iterdir()) == []
    recipes.run(Namespace(out=out))
    assert [path.name for path in tmp_path.iterdir()] == ["study"]
    assert (out / "recipes" / "own" / "_corpus.sh").is_file()


def test_a_folder_that_is_there_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.txt").write_text("mine\n", encoding="utf-8")
    assert main(["recipes", "--out", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
