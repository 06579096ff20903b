"""Which languages files are in: from their names, from flags, and asked for where neither says it."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.text.languages import is_language, name_sides
from lmfusion.text.textio import DataError

NONE = (None, None)
FILES = (Path("a/train.en"), Path("b/train.pt_BR.gz"))


@pytest.mark.parametrize("name", ["en", "pt_BR", "zh-Hant", "nds", "sr_RS-latin"])
def test_codes_of_languages(name: str) -> None:
    assert is_language(name)


@pytest.mark.parametrize("name", ["text", "src", "tgt", "xx", "EN", "summary", "txt", "e", "en.old", ""])
def test_other_names(name: str) -> None:
    assert not is_language(name)


def test_files_name_their_languages_and_flags_come_first() -> None:
    assert name_sides(NONE, FILES, None, None) == ("en", "pt_BR")
    assert name_sides((None, "pt"), FILES, None, None) == ("en", "pt")
    assert name_sides(("en", "fr"), (Path("train.src"), Path("train.tgt")), None, None) == ("en", "fr")
    assert name_sides(("src", "fr"), None, None, None) == ("src", "fr"), "what is said is believed"


def test_fields_name_the_sides_where_they_are_names() -> None:
    assert name_sides(NONE, None, ("translation.en", "translation.de"), None) == ("en", "de")
    assert name_sides(NONE, None, ("text", "summary"), "en") == ("text", "summary")
    with pytest.raises(DataError, match="-s en"):
        name_sides(NONE, None, ("1", "2"), None)


@pytest.mark.parametrize(
    ("given", "files", "fields", "text_language", "named"),
    [
        (NONE, None, ("text", "summary"), None, "text.*--text-lang"),
        (NONE, (Path("train.src"), Path("train.tgt")), None, None, "src.*-s en -t fr"),
        (NONE, (Path("source"), Path("train.fr")), None, None, "source.*-s"),
        (NONE, None, None, None, "source side.*-s"),
        (("en", None), None, None, None, "target side.*-t"),
        (("en", "en"), None, None, None, "en.*--text-lang"),
        (("en", "a/b"), None, None, None, "a/b"),
        (NONE, None, ("text", "summary"), "english", "--text-lang english"),
        (NONE, None, ("text", "summary"), "jp", r"--text-lang jp.*\bja\b"),
        (NONE, (Path("train.en"), Path("train.jp")), None, None, "jp.*-t ja"),
        (NONE, (Path("train.ua.gz"), Path("train.en")), None, None, "ua.*-s uk"),
        (NONE, None, ("en", "cz"), None, "cz.*-t cs"),
    ],
)
def test_what_is_not_said_is_asked_for_with_the_flag(
    given: tuple[str | None, str | None],
    files: tuple[Path, Path] | None,
    fields: tuple[str, str] | None,
    text_language: str | None,
    named: str,
) -> None:
    with pytest.raises(DataError, match=named):
        name_sides(given, files, fields, text_language)
