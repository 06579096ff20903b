"""The advice for text that is not UTF-8 names the encodings of its language, and its command gives the text back."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from lmfusion.text.codes import ISO_639_1, SLIPS, conversion
from lmfusion.text.opening import read_text
from lmfusion.text.own_request import Request
from lmfusion.text.textio import DataError, read_lines

TEXTS = [
    ("ja", "shift_jis", "これは本です"),
    ("zh", "gb18030", "这是一本书"),
    ("ko", "euc_kr", "이것은 책이다"),
    ("ru", "cp1251", "Это книга"),
    ("uk", "cp1251", "Це книга, її"),
    ("el", "iso8859_7", "Αυτό είναι"),
    ("he", "cp1255", "זה ספר"),
    ("ar", "cp1256", "هذا كتاب"),
    ("th", "tis_620", "นี่คือหนังสือ"),
    ("pl", "iso8859_2", "To jest książka"),
    ("tr", "iso8859_9", "Bu bir kitaptır, ş"),
    ("lt", "cp1257", "Tai knyga, ačiū"),
    ("vi", "cp1258", "Đây"),
    ("fr", "latin-1", "Voilà un livre"),
]


@pytest.mark.parametrize("read", [read_text, read_lines])
@pytest.mark.parametrize(("language", "encoding", "text"), TEXTS)
def test_the_command_that_is_named_gives_the_text_back(
    tmp_path: Path, read: Callable[[Path], Iterable[str]], language: str, encoding: str, text: str
) -> None:
    path = tmp_path / f"plain.{language}"
    path.write_bytes(f"{text}\n".encode(encoding))
    with pytest.raises(DataError, match=rf"plain\.{language}, line 1: not UTF-8") as told:
        list(read(path))
    command = re.findall("`(.*)`", str(told.value))[0]
    subprocess.run(command, shell=True, cwd=tmp_path, check=True)
    assert list(read_text(tmp_path / "FILE")) == [text]


@pytest.mark.parametrize(
    ("name", "languages", "encoding"),
    [
        ("plain.txt", (), "ENCODING"),
        ("plain", (), "ENCODING"),
        ("plain.ja.txt", (), "SHIFT_JIS"),
        ("plain.jp.gz", (), "SHIFT_JIS"),
        ("plain.zh_TW", (), "GB18030"),
        ("pairs.en-ru.tsv", (), "WINDOWS-1251"),
        ("pairs.tsv", ("en", "ja"), "SHIFT_JIS"),
        ("pairs.tsv", ("en", "de"), "ISO-8859-1"),
        ("a.txt", ("cz",), "ISO-8859-2"),
        ("a.en", ("pl",), "ISO-8859-2"),
        ("a.txt", ("text", "summary"), "ENCODING"),
    ],
)
def test_the_language_is_what_was_said_or_what_the_ending_says(
    name: str, languages: tuple[str, ...], encoding: str
) -> None:
    assert f"`iconv -f {encoding} -t UTF-8 {name} > FILE`" in conversion(Path(name), languages)


@pytest.mark.parametrize("kind", ["pairs", "tsv", "jsonl", "valid"])
def test_flags_say_the_language_where_files_do_not(tmp_path: Path, kind: str) -> None:
    bad, good = tmp_path / "one.txt", tmp_path / "two.txt"
    bad.write_bytes("本\t本\n".encode("shift_jis"))
    good.write_text("book\n", encoding="utf-8")
    given = dict.fromkeys(("pairs", "tsv", "jsonl", "tmx", "fields", "text_language", "valid", "test"))
    given[kind] = (good, bad) if kind in ("pairs", "valid") else bad
    request = Request(source="en", target="ja", text=(), held_out=1, seed=1, **given)
    with pytest.raises(DataError, match="SHIFT_JIS"):
        list(request.given["valid"] if kind == "valid" else request.reader())


def test_what_is_meant_by_a_slip_is_a_code() -> None:
    assert set(SLIPS.values()) <= ISO_639_1
    assert not set(SLIPS) & set(SLIPS.values())
