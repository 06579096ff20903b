"""Manual pages, HTML, help pages and message catalogs -> paragraphs; and which language a path says."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

from debian_corpus import catalogs, markup, roff
from debian_corpus.documents import path_language
from debian_corpus.language import Language
from debian_corpus.text import words
from debian_packages import ENGLISH, GERMAN, catalog

PAGE = r"""
.\" a comment
.de Vx
a definition
..
.if n .ds Aq \(aq
.ie \n(.g \{\
.  ds XX for other devices
The text for other devices is left out.
.\}
.el .ds XX ''
.TH ACCEPT 2 "1. Juli 2023"
.SH "RETURN VALUE"
The \fBaccept\fP() call (see
.BR accept (2),
.IR fd )
isn\(aqt \[u00FC]ber\-all\& \(lqthere\(rq.
.\" within a paragraph
It has a \\ in it.
.TP
.BI \-a " file"
Use this file.
.IP \(bu 2
An item.
.nf
int accept(int);
.fi
See
.UR https://example.org
the page
.UE .

Next \c
one \[unheardof] is left out.
.EX
$ an example
.EE
.SS
A late heading
Last.
"""


def test_paragraphs_of_a_manual_page() -> None:
    assert roff.paragraphs(PAGE) == [
        "RETURN VALUE",
        "The accept() call (see accept(2), fd) isn't über-all “there”. It has a \\ in it.",
        "-a file",
        "Use this file.",
        "An item.",
        "See",
        "the page.",
        "A late heading",
        "Last.",
    ]


@pytest.mark.parametrize("source", [".so man2/accept.2", ".Dd May 1, 2020\n.Dt LS 1\n.Sh NAME\nls in BSD's macros"])
def test_pages_that_point_elsewhere_or_use_other_macros_give_nothing(source: str) -> None:
    assert roff.paragraphs(source) == []


def test_blocks_of_html() -> None:
    page = """<!DOCTYPE html><html><head><title>left out</title><script>var x;</script></head><body>
        <nav>left out</nav><h1>A&nbsp;title</h1><!-- left out --><p>Some <b>bold</b>,<br>broken &amp; <a href="#">linked
        </a> text.</p><ul><li>one<ul><li>two</li></ul>three</li></ul><pre>left out</pre>after</body></html>"""
    found = ["A title", "Some bold,", "broken & linked text.", "one", "two", "three", "after"]
    assert markup.html_blocks(page) == found
    assert markup.html_blocks("") == []


def test_the_encoding_of_html() -> None:
    """UTF-8 unless the page says otherwise."""
    text = "<p>Über die Größe</p>"
    assert markup.html_blocks(text.encode()) == ["Über die Größe"]
    assert markup.html_blocks(b'<meta charset="iso-8859-1">' + text.encode("iso-8859-1")) == ["Über die Größe"]
    with pytest.raises(ValueError, match="utf-8"):
        markup.html_blocks(text.encode("iso-8859-1"))


def test_deep_nesting_does_no_harm() -> None:
    assert markup.html_blocks("<div>" * 200 + "text") == ["text"]
    assert markup.html_blocks("<div>" * 100_000 + "text") == []  # deeper than libxml2 reads


def test_entities_of_help_pages_are_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    page = f'<!DOCTYPE page [<!ENTITY x SYSTEM "file://{tmp_path}/secret">]><page><p>A &x; word</p></page>'
    assert "secret" not in "".join(markup.mallard_blocks(page.encode()))


def test_messages_with_contexts_and_plurals_but_without_directives_and_codes() -> None:
    data = catalog(
        {
            "verb\x04Open the file": "Die Datei öffnen",
            "one file\x00many files": "eine Datei\x00viele Dateien",
            "%d files": "%d Dateien",
            "the {name} file": "die Datei {name}",
            "100 % of it": "100 % davon",
        }
    )
    assert sorted(catalogs.messages(data)) == [
        ("100 % of it", "100 % davon"),
        ("Open the file", "Die Datei öffnen"),
        ("one file", "eine Datei"),
        ("one file", "viele Dateien"),
    ]
    with pytest.raises(ValueError, match="Bad magic"):
        catalogs.messages(b"no catalog at all")


@pytest.mark.parametrize(
    ("message", "blocks"),
    [
        ("_Open the file", ["Open the file"]),
        ("Datei ö&ffnen", ["Datei öffnen"]),
        ("snake_case and _two marks", ["snake_case and _two marks"]),
        ("Nuts & bolts", ["Nuts & bolts"]),
        ("One\nline.\n\nAnother.", ["One line.", "Another."]),
        ("<para>A <b>bold</b> word.</para><para>Two &amp; three.</para>", ["A bold word.", "Two & three."]),
    ],
)
def test_a_message_without_marks_of_shortcuts_and_markup(message: str, blocks: list[str]) -> None:
    assert catalogs.message_blocks(message) == blocks


@pytest.mark.parametrize(
    ("path", "languages", "spoken"),
    [
        ("usr/share/man/man1/ls.1.gz", ("*",), "en"),
        ("usr/share/man/de/man1/ls.1.gz", ("*",), "de"),
        ("usr/share/man/de.UTF-8/man1/ls.1.gz", ("*",), None),
        ("usr/share/man/fr/man1/ls.1.gz", ("*",), None),
        ("usr/share/help/C/x/index.page", ("*",), "en"),
        ("usr/share/doc/book/html/de-DE/index.html", ("*",), "de"),
        ("usr/share/doc/FAQ/index.de.html", ("*",), "de"),
        ("usr/share/wordpress/admin-de_DE.mo", ("*",), "de"),
        ("usr/share/doc/x/index.html", ("*",), None),
        ("usr/share/doc/x/index.html", ("de",), "de"),
        ("usr/share/doc/x/code.html", ("*",), None),
    ],
)
def test_the_path_says_the_language(path: str, languages: tuple[str, ...], spoken: str | None) -> None:
    assert path_language(path, "de", languages) == spoken


def test_languages_are_told_apart_and_lists_of_names_are_neither() -> None:
    english, german = ENGLISH.splitlines(), GERMAN.splitlines()
    for number in range(len(english)):  # each sentence is judged by what was learned from the others
        others = [lines[:number] + lines[number + 1 :] for lines in (english, german)]
        is_english, is_german = Language(*others), Language(*reversed(others))
        assert is_english.speaks(words(english[number]))
        assert not is_english.speaks(words(german[number]))
        assert is_german.speaks(words(german[number]))
        assert not is_german.speaks(words(english[number]))
    assert not Language(english, german).speaks(words("accept(2), bind(2), fopen(3)"))
