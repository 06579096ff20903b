"""What is no file, where one is read twice: what is there in its place is said, not that nothing is there."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lmfusion import InputError
from lmfusion.cli import main
from lmfusion.text import opening, textio

KINDS = {"pipe": "pipe", "folder": "folder", "nothing": "no such file"}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return a folder with a pipe and a folder in it."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_readers_of_text_say_what_is_there(kind: str, place: Path) -> None:
    for read in (textio.count_lines, opening.open_any, lambda path: textio.copy_file(path, place / "copy")):
        with pytest.raises(InputError, match=rf"{kind}: .*{KINDS[kind]}"):
            read(place / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_say_what_is_there(kind: str, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, text = str(place / kind), str(place / "train.fr")
    Path(text).write_text("une ligne\n", encoding="utf-8")
    languages = ["-s", "en", "-t", "fr", "--out", str(place / "out")]
    for words in (["predict", "model.pt", "--input", path], ["data", "--pairs", path, text, *languages]):
        assert main(words) == 2
        (said,) = capsys.readouterr().err.splitlines()
        assert path in said
        assert KINDS[kind] in said
