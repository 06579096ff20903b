"""What cannot be meant or read of a person's own text is refused in a line that names it, and nothing is left of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lmfusion.text import own_data
from lmfusion.text.own_corpus import build
from lmfusion.text.textio import DataError


def test_unequal_files_say_up_to_where_they_fit(own: Any) -> None:
    german = [*own.german[:600], "eine mehr", *own.german[600:]]
    with pytest.raises(DataError, match=r"a\.en has 1,\d+ lines but .*a\.de has 1,\d+.* line 600"):
        own.build(pairs=(own.put("a.en", own.english), own.put("a.de", german)))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"pairs": None}, "no text given"),
        ({"tsv": Path("own.en")}, "--pairs and --tsv given"),
        ({"fields": ("1", "2")}, "--fields"),
        ({"target": "en"}, "both 'en'"),
        ({"target": "../de"}, "'../de'"),
        ({"held_out": 0}, "--held-out 0"),
        ({"pairs": (Path("own.en"), Path("own.en"))}, "both sides"),
        ({"pairs": (Path("own.de"), Path("own.en"))}, "de to en"),
        ({"pairs": (Path("own.en"), Path("none.de"))}, "none.de: no such file"),
        ({"text": (Path("own.txt"),)}, "own.txt: which language"),
        ({"pairs": (Path("out/train.en"), Path("own.de"))}, "train.en"),
        ({"pairs": (Path("blank.en"), Path("blank.de"))}, "no pair"),
        ({"held_out": 101}, "202 of the 400|more than half"),
    ],
)
def test_what_cannot_be_meant_is_refused(
    own: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], named: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    own.files(own.pairs)
    own.files([(" ", " ")], "blank")
    for name in ("own.txt", "out/train.en"):
        own.put(name, ["text"])
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.*")}
    with pytest.raises(DataError, match=named):
        build(own.request(**{"pairs": (Path("own.en"), Path("own.de")), **change}), Path("out"))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == before


def test_an_error_midway_leaves_no_partial_file(own: Any, tmp_path: Path) -> None:
    text = tmp_path / "plain.en"
    text.write_bytes(b"good\n" * 200 + b"\xff\n")
    with pytest.raises(DataError, match=r"plain\.en, line 201"):
        own.build(text=(text,))
    assert not list((tmp_path / "out").glob("*partial*"))
    assert not list((tmp_path / "out").glob("mono.*.en"))


def test_a_corpus_folder_without_its_record_is_not_taken_for_the_text(own: Any, tmp_path: Path) -> None:
    asked, out = own.request(), tmp_path / "out"
    made = own_data.split(asked, out)
    assert own_data.split(asked, out) == made
    (out / own_data.CORPUS / own_data.RECORD).unlink()
    before = {path.name: path.read_bytes() for path in (out / own_data.CORPUS).iterdir()}
    with pytest.raises(DataError, match=own_data.RECORD):
        own_data.split(asked, out)
    assert {path.name: path.read_bytes() for path in (out / own_data.CORPUS).iterdir()} == before
