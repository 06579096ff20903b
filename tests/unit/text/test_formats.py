"""Text as people have it: formats, compression, encodings, and what is no text."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zipfile
from pathlib import Path

import pytest

from lmfusion.text.formats import JsonPairs, PlainPairs, TablePairs
from lmfusion.text.opening import read_text
from lmfusion.text.textio import DataError
from lmfusion.text.tmx import TmxPairs

LINES = ["ein Haus", "zwei  Häuser\t", "", "日本語のテキスト"]
CLEAN = ["ein Haus", "zwei Häuser", "", "日本語のテキスト"]


def put(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", ["a.de", "a.gz", "a.xz"])
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_text_is_read_plain_or_compressed_whatever_its_name(tmp_path: Path, name, pack, line_end: str) -> None:
    path = put(tmp_path / name, pack(("\ufeff" + line_end.join(LINES)).encode()))
    assert list(read_text(path)) == LINES
    pairs = PlainPairs(path, path)
    assert list(pairs) == [(line, line) for line in CLEAN]
    assert list(pairs) == [(line, line) for line in CLEAN], "read once more"


@pytest.mark.parametrize(
    ("content", "named"),
    [
        ("Häuser\n".encode("utf-16"), "iconv -f UTF-16 "),
        ("Häuser\n".encode("utf-32"), "iconv -f UTF-32 "),
        ("two houses\n".encode("utf-16-le"), "iconv -f UTF-16LE "),
        ("two houses\n".encode("utf-16-be"), "iconv -f UTF-16BE "),
        (gzip.compress("Häuser\n".encode("utf-16"), mtime=0), "iconv -f UTF-16 "),
        ("one\ntwo\nH\u00e4user\n".encode("latin-1"), "line 3: not UTF-8 .*0xe4 at position 2"),
        ("Häuser\n".encode("latin-1"), r"iconv -f ISO-8859-1 -t UTF-8 train\.en > FILE"),
        (b"one\rtwo\rthree\r", "old-Mac"),
        (b"one\ntwo\x00\n", "line 2: has a NUL byte"),
        (bytes(200), "line 1: has a NUL byte"),
        (b"%PDF-1.7\n...", "PDF"),
        (b"BZh91AY&SY", "bunzip2"),
        (b"", "empty"),
        (gzip.compress(b"one\ntwo\n" * 9000, mtime=0)[:-20], "complete"),
    ],
)
def test_what_is_no_utf_8_text_is_named_with_its_fix(tmp_path: Path, content: bytes, named: str) -> None:
    path = put(tmp_path / "train.en", content)
    with pytest.raises(DataError, match=rf"train\.en.*{named}"):
        list(read_text(path))


def test_a_text_in_other_scripts_is_not_taken_for_utf_16(tmp_path: Path) -> None:
    path = put(tmp_path / "a", "語\n" * 50)
    assert list(read_text(path)) == ["語"] * 50


@pytest.mark.parametrize(
    ("inside", "named"), [("word/document.xml", "docx"), ("xl/workbook.xml", "xlsx"), ("a.txt", "zip")]
)
def test_documents_in_archives_are_named(tmp_path: Path, inside: str, named: str) -> None:
    with zipfile.ZipFile(tmp_path / "train.en", "w") as archive:
        archive.writestr(inside, "text")
    with pytest.raises(DataError, match=named):
        list(read_text(tmp_path / "train.en"))


def test_unequal_numbers_of_lines_are_both_named(tmp_path: Path) -> None:
    pairs = PlainPairs(put(tmp_path / "a", "1\n2\n3\n"), put(tmp_path / "b", "1\n2"))
    with pytest.raises(DataError, match=r"a has 3 lines but .*b has 2"):
        list(pairs)


TABLE = 'id\tde\tnote\ten\n1\tein "Haus\tx\ta "house\n2\tzwei\t\ttwo\n'


@pytest.mark.parametrize(
    ("content", "fields", "expected", "columns"),
    [
        ("a house\tein Haus\r\n\n'two\tzwei\n", None, [("a house", "ein Haus"), ("", ""), ("'two", "zwei")], "1 and 2"),
        ("de\ten\nein Haus\ta house\n", None, [("a house", "ein Haus")], "2 (en) and 1 (de)"),
        (TABLE, ("en", "de"), [('a "house', 'ein "Haus'), ("two", "zwei")], "4 (en) and 2 (de)"),
        (TABLE, ("4", "2"), [("en", "de"), ('a "house', 'ein "Haus'), ("two", "zwei")], "4 and 2"),
    ],
)
def test_columns_of_a_table(tmp_path: Path, content: str, fields, expected, columns: str) -> None:
    pairs = TablePairs(put(tmp_path / "t.tsv", content), fields, ("en", "de"))
    assert list(pairs) == expected
    assert [note for note in pairs.notes if columns in note]


@pytest.mark.parametrize(
    ("content", "fields", "named"),
    [
        ("a\tb\tc\n", None, "line 1: has 3 columns"),
        ("a b\n", None, "line 1: has 1 columns"),
        ("a\tb\na\tb\tc\n", None, "line 2: has 3 columns"),
        (TABLE + "3\tdrei\n", ("en", "de"), "line 4: has 2 columns"),
        (TABLE, ("en", "fr"), "'fr'.*id, de, note, en"),
        (TABLE, ("1", "5"), "has 4 columns"),
        (TABLE, ("0", "1"), "from 1 on"),
    ],
)
def test_a_table_without_the_columns_is_named(tmp_path: Path, content: str, fields, named: str) -> None:
    with pytest.raises(DataError, match=named):
        list(TablePairs(put(tmp_path / "t.tsv", content), fields, ("en", "de")))


def test_a_table_that_a_csv_writer_quoted_is_told_and_a_sentence_in_quotes_is_not(tmp_path: Path) -> None:
    spoken = '"No."\t"Nein."\n" ""a "" b\tc\n'
    pairs = TablePairs(put(tmp_path / "t.tsv", spoken), None, ("en", "de"))
    assert list(pairs) == [('"No."', '"Nein."'), ('" ""a "" b', "c")]
    assert len(pairs.notes) == 1
    quoted = TablePairs(put(tmp_path / "t.tsv", spoken + '"a ""b"" c"\td\n' * 2), None, ("en", "de"))
    assert list(quoted)[2] == ('"a ""b"" c"', "d")
    (note,) = quoted.notes[1:]
    assert re.findall(r"\b\d+\b", note.rpartition("t.tsv")[2]) == ["2", "3"]


def test_json_lines(tmp_path: Path) -> None:
    entries = [
        {"translation": {"en": "a\nhouse", "de": "ein Haus"}},
        {"translation": {"en": None, "de": ["zwei", "Häuser"]}, "more": 1},
    ]
    path = put(tmp_path / "a.jsonl", "\n".join(map(json.dumps, entries)) + "\n\n")
    pairs = JsonPairs(path, ("translation.en", "translation.de"))
    assert list(pairs) == [("a house", "ein Haus"), ("", "zwei Häuser"), ("", "")]
    dotted = put(tmp_path / "b.jsonl", '{"a.b": "x", "c": "y"}\n')
    assert list(JsonPairs(dotted, ("a.b", "c"))) == [("x", "y")]


@pytest.mark.parametrize(
    ("second", "named"),
    [
        ('{"text": "b", "abstract": "c"}', "no key 'summary'; there is text, abstract"),
        ('{"text": "b", "summary": 3}', "'summary' is 3"),
        ('{"text": "b", "summary": "\\ud800"}', "'summary' is"),
        ('{"text": "b", "summary": "c\\u0000"}', "'summary' is"),
        ('{"text": "b", ', "no JSON"),
        ('[{"text": "b"}]', "jq"),
        ('"text"', "no key 'text'"),
        ("[" * 100_000, "no JSON"),
    ],
)
def test_a_json_line_without_the_text_is_named(tmp_path: Path, second: str, named: str) -> None:
    path = put(tmp_path / "a.jsonl", '{"text": "a", "summary": "b"}\n' + second + "\n")
    with pytest.raises(DataError, match=f"line 2: .*{named}"):
        list(JsonPairs(path, ("text", "summary")))


def memory(units: str, doctype: str = '<!DOCTYPE tmx SYSTEM "tmx14.dtd">') -> str:
    return (
        f'<?xml version="1.0" encoding="UTF-8"?>{doctype}<tmx version="1.4"><header srclang="en"/>'
        f"<body>{units}</body></tmx>"
    )


def unit(**texts: str) -> str:
    inner = (f'<tuv xml:lang="{name.replace("_", "-")}"><seg>{text}</seg></tuv>' for name, text in texts.items())
    return f"<tu>{''.join(inner)}</tu>"


UNITS = (
    unit(en_GB="Press <bpt i='1'>&lt;b&gt;<sub>note</sub></bpt>OK<ept i='1'>&lt;/b&gt;</ept> &amp; go", DE_de="Weiter")
    + unit(en="only English")
    + unit(fr="feu", de="<hi>Feuer</hi> <!-- no text -->frei", en="fire")
    + unit(en_US="colour", en="color", de="Farbe")
)
PAIRS = [("Press OK & go", "Weiter"), ("fire", "Feuer frei"), ("color", "Farbe")]


def test_a_translation_memory(tmp_path: Path) -> None:
    pairs = TmxPairs(put(tmp_path / "a.tmx", memory(UNITS)), ("en", "de"))
    assert list(pairs) == PAIRS
    assert len(pairs.notes) == 1
    assert "1 of 4 units" in pairs.notes[0]
    packed = put(tmp_path / "b.tmx", gzip.compress(memory(UNITS).replace("UTF-8", "UTF-16").encode("utf-16")))
    assert list(TmxPairs(packed, ("en", "de"))) == PAIRS
    old = put(tmp_path / "c.tmx", memory(UNITS).replace("xml:lang", "lang"))
    assert list(TmxPairs(old, ("DE", "en_gb"))) == [("Weiter", "Press OK & go")]


def test_a_memory_without_the_languages_says_which_it_has(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"both en and it.* 4 units .*en \(3\), de \(2\), en-gb \(1\)"):
        list(TmxPairs(put(tmp_path / "a.tmx", memory(UNITS)), ("en", "it")))


BOMB = "".join(f'<!ENTITY e{n} "{f"&e{n - 1};" * 10}">' for n in range(1, 10))


@pytest.mark.parametrize(
    "entities", [f'<!ENTITY e0 "ha">{BOMB}', '<!ENTITY e9 SYSTEM "SECRET">', '<!ENTITY % p "x"><!ENTITY e9 "y">']
)
def test_entities_are_neither_expanded_nor_read(tmp_path: Path, entities: str) -> None:
    secret = put(tmp_path / "secret", "secret text")
    doctype = f"<!DOCTYPE tmx [{entities.replace('SECRET', secret.as_uri())}]>"
    path = put(tmp_path / "a.tmx", memory(unit(en="&e9;", de="x"), doctype))
    with pytest.raises(DataError, match="entities"):
        list(TmxPairs(path, ("en", "de")))


def test_a_bomb_in_an_attribute_is_refused(tmp_path: Path) -> None:
    doctype = f'<!DOCTYPE tmx [<!ENTITY e0 "ha">{BOMB}]>'
    text = memory(unit(en="a", de="x"), doctype).replace('version="1.4"', 'version="&e9;"')
    with pytest.raises(DataError, match=r"a\.tmx"):
        list(TmxPairs(put(tmp_path / "a.tmx", text), ("en", "de")))


def test_a_cut_memory_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"a\.tmx: no well-formed"):
        list(TmxPairs(put(tmp_path / "a.tmx", memory(UNITS)[:-40]), ("en", "de")))
    with pytest.raises(DataError, match=r"b\.tmx: no well-formed"):
        list(TmxPairs(put(tmp_path / "b.tmx", "no xml at all"), ("en", "de")))
