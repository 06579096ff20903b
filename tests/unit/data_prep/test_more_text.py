"""More monolingual text out of packages: what is read, what is kept out, and what is refused. No network."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

import check_split
import more_text
from debian_corpus import debs, more
from debian_packages import GERMAN, HELD_OUT, catalog, make_corpus, make_deb, page

MANUAL = """\
.TH FROB 1
.SH NAME
frob \\- this is a tool that turns the picture
.SH DESCRIPTION
The
.B frob
tool is able to turn the picture in the window.
.PP
You can set the angle of the turn with this option.
"""
HANDBUCH = f"""\
.TH FROB 1
.SH BESCHREIBUNG
Das Werkzeug ist in der Lage, das Bild im Fenster zu drehen.
.PP
This passage of the page is not translated and it is still in the original language.
.PP
{GERMAN.splitlines()[0]}
.PP
Ein Zitat: {HELD_OUT["de"]}
"""
HANDBOOK = b"""<html><head><title>The title of this page is left out</title></head><body>
<p>The first <em>chapter</em> of the book is about the installation of the system.</p>
<pre>this is the output of the command and it is not text</pre></body></html>"""
HELP = """<page xmlns="http://projectmallard.org/1.0/"><info><desc>The info is left out of the text.</desc></info>
<title>Die Hilfe zu dem Programm</title><p>Klicken Sie auf <gui>Ende</gui>, um das Fenster zu schließen.</p></page>"""
MESSAGES = {
    "The connection to the server was lost": "Die Verbindung zu dem Server wurde unterbrochen",
    "menu\x04_Open the folder in a window": "Den _Ordner in einem Fenster öffnen",
    "The file %s is not there": "Die Datei %s ist nicht da",
    "Open": "Öffnen",
}
SOURCES = {"some-lists": "coreutils"}  # a family of the test set
LOCALE = "usr/share/locale/de/LC_MESSAGES"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    """Stand-ins for a package of every kind, one of a held-out family, and their table."""
    folder = tmp_path / "packages"
    folder.mkdir()
    rows = {
        "manpages": ("man", "*", {"usr/share/man/man1/frob.1.gz": page(MANUAL),
                                     "usr/share/man/de/man1/frob.1.gz": page(HANDBUCH),
                                     "usr/share/man/fr/man1/frob.1.gz": page("C'est la page de la langue."),
                                     "usr/share/man/man1/coreutils.1.gz": page("It is a page of the held-out set.")}),
        "some-book": ("html", "en", {"usr/share/doc/some-book/index.html": HANDBOOK}),
        "some-help": ("mallard", "*", {"usr/share/help/de/some/index.page": HELP.encode(),
                                       "usr/share/help/de/some/bad.page": b"<page>"}),
        "some-app": ("catalog", "*", {f"{LOCALE}/some.mo": catalog(MESSAGES), f"{LOCALE}/bad.mo": b"no catalog"}),
        "some-lists": ("man", "*", {"usr/share/man/man1/ls.1.gz": page("It is the list of the files in the folder.")}),
    }  # fmt: skip
    table = ["# a comment", "\t".join(debs.COLUMNS)]
    for name, (kinds, languages, files) in rows.items():
        source = SOURCES.get(name, name)
        seen = make_deb(folder, name, files, source=source)
        table.append(f"{name}\t{source}\t{kinds}\t{languages}\t{seen}")
    (folder / "table.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    make_corpus(tmp_path / "corpus")
    return folder


def run(packages: Path, out: Path, *more: str) -> int:
    """The command on the stand-ins."""
    given = ["--packages", str(packages), "--table", str(packages / "table.tsv"), "--plain"]
    return more_text.main([*given, "--corpus", str(packages.parent / "corpus"), "--out", str(out), *more])


def lines(path: Path) -> set[str]:
    return set(path.read_text(encoding="utf-8").splitlines())


def test_sentences_of_pages_books_help_and_messages(packages: Path, tmp_path: Path) -> None:
    out = tmp_path / "more"
    assert run(packages, out) == 0
    assert lines(out / "mono.more.en") == {
        "frob - this is a tool that turns the picture",
        "The frob tool is able to turn the picture in the window.",
        "You can set the angle of the turn with this option.",
        "The first chapter of the book is about the installation of the system.",
        "The connection to the server was lost",
        "Open the folder in a window",
    }
    # Not: the passage left in English, the sentence of the corpus' training text, the quoted held-out sentence.
    assert lines(out / "mono.more.de") == {
        "Das Werkzeug ist in der Lage, das Bild im Fenster zu drehen.",
        "Die Hilfe zu dem Programm",
        "Klicken Sie auf Ende, um das Fenster zu schließen.",
        "Die Verbindung zu dem Server wurde unterbrochen",
        "Den Ordner in einem Fenster öffnen",
    }


def test_what_was_left_out_is_counted_by_reason_and_package(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(packages, tmp_path / "more") == 0
    counts = json.loads((tmp_path / "more" / "counts.json").read_text(encoding="utf-8"))
    assert "some-lists" not in counts["packages"]
    assert "left out, of held-out families: some-lists\n" in capsys.readouterr().out
    assert counts["packages"]["manpages"]["read"] == {"files": 2, "files of held-out families": 1}
    assert counts["packages"]["some-help"]["read"] == {"files": 1, "unreadable files": 1}
    assert counts["packages"]["some-app"]["read"] == {"files": 1, "unreadable files": 1}
    assert counts["packages"]["some-app"]["lines"] == {"en": 2, "de": 2}
    assert counts["packages"]["some-book"]["licence"] == "GPL-2+"
    assert counts["left_out"]["de"] == {
        "near-duplicates of held-out text": 1,
        "of another language, or no running text": 1,
        "repeated": 1,
    }
    assert counts["files"]["mono.more.en"]["lines"] == 6


def test_no_held_out_text_is_left_by_the_check_of_the_corpus(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "more"
    assert run(packages, out) == 0
    assert "0 of 1 held-out lines have one in the 5 lines left" in capsys.readouterr().out
    corpus = tmp_path / "corpus"
    for name, text in {"test": "Frobnitz quux garply waldo.", "valid": "Zzyzx qwrt plugh xyzzy."}.items():
        for lang in ("en", "de"):  # instead of the stand-in corpus' own, whose held-out sets are the same sentence
            (corpus / f"{name}.{lang}").write_text(f"{text}\n", encoding="utf-8")
    arguments = [str(corpus), "--more", str(out)]
    assert check_split.main(arguments) == 0
    with (out / "mono.more.de").open("a", encoding="utf-8") as stream:
        stream.write(HELD_OUT["de"].replace("schnelle", "kleine") + "\n")
    assert check_split.main(arguments) == 1
    assert "mono.valid.de (1 lines) in mono.more.train.de (6 lines): 1" in capsys.readouterr().out


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[-100] ^= 1
    path.write_bytes(data)


def replace(path: Path) -> None:
    path.unlink()
    make_deb(path.parent, "some-book", {"usr/share/doc/some-book/index.html": HANDBOOK}, version="2.0")


def rename(path: Path) -> None:
    make_deb(path.parent, "some-book", {}, source="coreutils")


BAD_PACKAGES: dict[str, tuple[Callable[[Path], None], str]] = {
    "truncated": (truncate, "some-book: changed or truncated"),
    "changed": (change, "some-book: changed or truncated"),
    "no package": (lambda path: path.write_bytes(b"<html>404</html>"), "some-book: some-book_1.0_all.deb is damaged"),
    "cut before its control file": (lambda path: path.write_bytes(path.read_bytes()[:100]), "it ends in the middle"),
    "missing": (Path.unlink, "some-book: no some-book_*.deb in"),
    "another source": (rename, "some-book_1.0_all.deb holds the package some-book of source coreutils"),
    "another version": (replace, "some-book: is version 2.0, not 1.0; if older, run apt-get update; --any-version"),
}


@pytest.mark.parametrize("kind", BAD_PACKAGES)
def test_a_package_that_is_not_the_one_of_the_table_is_refused_by_name(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    spoil, message = BAD_PACKAGES[kind]
    spoil(packages / "some-book_1.0_all.deb")
    assert run(packages, tmp_path / "more") == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.glob("*more*"))


def test_other_versions_are_taken_on_demand_but_not_damaged_ones(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    replace(packages / "some-book_1.0_all.deb")
    assert run(packages, tmp_path / "more", "--any-version") == 0
    truncate(packages / "some-book_2.0_all.deb")
    assert run(packages, tmp_path / "other", "--any-version") == 1
    assert "some-book_2.0_all.deb is damaged" in capsys.readouterr().err
    assert not list(tmp_path.glob("*other*"))


def test_no_finished_folder_is_overwritten_and_a_bad_table_is_refused_by_line(
    packages: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "more").mkdir()
    (tmp_path / "more" / "mine").write_text("mine")
    assert run(packages, tmp_path / "more") == 1
    assert "will not be overwritten" in capsys.readouterr().err
    (packages / "table.tsv").write_text("some-book\tsome-book\tpdf\ten\t1.0\tabc\tGPL\n")
    assert run(packages, tmp_path / "other") == 1
    assert "table.tsv, line 1: not a row of package, source, kinds, languages" in capsys.readouterr().err


def test_what_the_removal_misses_is_an_error_rather_than_a_leak(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(more, "matching_lines", lambda index, found, lang: {})
    with pytest.raises(more.CorpusError, match="1 held-out lines are still in the de text"):
        more.without_leaks([HELD_OUT["de"]], [HELD_OUT["de"]], "de")


def test_the_shipped_table_lists_no_package_of_a_held_out_family() -> None:
    rows = debs.read_table(more_text.HERE / "more_text.tsv")
    assert {"manpages-de", "manpages-dev", "developers-reference-de"} <= {row.package for row in rows}
    assert len({row.package for row in rows}) == len(rows)
    assert all(row.licence and row.version for row in rows)
    assert not [row.package for row in rows if more.held_out(row.source)]
