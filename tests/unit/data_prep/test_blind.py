"""The blind test set out of two help packages: what is paired, and what is kept out. No network."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

import blind
from debian_corpus import debs
from debian_packages import ENGLISH, GERMAN, make_corpus, make_deb

BLOCKS = {
    "hd_id1": ("Saving the whole document", "Das ganze Dokument speichern"),
    "par_id2": (
        "Choose the menu File. Then click on Save.",
        "Wählen Sie das Menü Datei. Klicken Sie dann auf Speichern.",
    ),
    "par_id3": (ENGLISH.splitlines()[2], GERMAN.splitlines()[2]),  # training text
    "par_id4": ("Press the key Ctrl now", "Drücken Sie jetzt Taste Strg"),
    "par_id5": ("Only English has this paragraph here.", None),
    "par_id6": ("Not translated at all so far.", "Not translated at all so far."),
    "bm_id7": ("The name of this element is another one.", "Der Name dieses Elements ist ein anderer."),
}
KEY = '<span hidden="true" class="MAC" id="MACx">Command</span><span hidden="true" id="defaultx">{}</span>'


def page(side: int) -> bytes:
    """A page of the help."""
    texts = {name: texts[side] for name, texts in BLOCKS.items() if texts[side]}
    body = "".join(f'<p id="{name}">{text}</p>' for name, text in texts.items())
    for key in ("Ctrl", "Strg"):
        body = body.replace(key, KEY.format(key))
    return f'<html><head><meta charset="UTF-8"></head><body>{body}</body></html>'.encode()


@pytest.fixture
def given(tmp_path: Path) -> list[str]:
    """The command line for stand-ins of the packages."""
    folder = tmp_path / "packages"
    folder.mkdir()
    table = ["\t".join(debs.COLUMNS)]
    for side, (package, lang) in enumerate((("libreoffice-help-en-us", "en-US"), ("libreoffice-help-de", "de"))):
        files = {f"usr/share/libreoffice/help/{lang}/text/swriter/main.html": page(side)}
        seen = make_deb(folder, package, files, source="libreoffice")
        table.append(f"{package}\tlibreoffice\thtml\t{lang[:2]}\t{seen}")
    (folder / "table.tsv").write_text("\n".join(table) + "\n", encoding="utf-8")
    words = ["--corpus", str(make_corpus(tmp_path / "corpus")), "--packages", str(folder), "--plain"]
    return [*words, "--table", str(folder / "table.tsv"), "--out", str(tmp_path / "blind")]


def test_paragraphs_are_paired_by_name_and_what_the_corpus_has_is_left_out(given: list[str], tmp_path: Path) -> None:
    assert blind.main(given) == 0
    sides = [(tmp_path / "blind" / f"help.{lang}").read_text(encoding="utf-8").splitlines() for lang in ("en", "de")]
    assert dict(zip(*sides)) == {
        "Saving the whole document": "Das ganze Dokument speichern",
        "Choose the menu File.": "Öffnen Sie das Menü Datei.",
        "Then click on Save.": "Klicken Sie dann auf Speichern.",
        "Press the key Ctrl now": "Drücken Sie jetzt Taste Strg",
    }
    counts = json.loads((tmp_path / "blind" / "counts.json").read_text(encoding="utf-8"))
    assert [package["package"] for package in counts["packages"]] == ["libreoffice-help-en-us", "libreoffice-help-de"]


def test_the_same_packages_give_the_same_lines_and_size_bounds_them(given: list[str], tmp_path: Path) -> None:
    assert blind.main(given) == 0
    first = (tmp_path / "blind" / "help.de").read_text(encoding="utf-8").splitlines()
    assert blind.main([*given[:-1], str(tmp_path / "again"), "--size", "2"]) == 0
    assert (tmp_path / "again" / "help.de").read_text(encoding="utf-8").splitlines() == first[:2]


def test_another_language_than_the_corpus_is_refused(given: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert blind.main([*given, "--lang", "fr"]) == 1
    assert "--lang is fr" in capsys.readouterr().err
