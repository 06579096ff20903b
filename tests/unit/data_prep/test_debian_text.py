"""From a package description to sentences and pairs: real descriptions, as the Translation indices have them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "data-prep" / "debian"))

from debian_corpus import clean, entries, segment, text, units

SOUNDCONVERTER_EN = """\
Package: soundconverter
Description-md5: df64ec8695eb6d4a89ca29f2bff306ee
Description-en: GNOME application to convert audio files into other formats
 SoundConverter is a simple sound converter application for the GNOME
 environment. It reads sound files in any format supported by GStreamer.
 .
 Features:
  * converts several files at once, using all
    processors;
  * renames files by their tags.
"""
SOUNDCONVERTER_DE = """\
Package: soundconverter
Description-md5: df64ec8695eb6d4a89ca29f2bff306ee
Description-de: GNOME-Anwendung, um Audiodateien in andere Formate zu konvertieren
 SoundConverter ist ein einfacher Soundkonverter für die GNOME-Umgebung. Er
 liest Sounddateien in allen von GStreamer unterstützten Formaten.
 .
 Funktionen:
  * wandelt mehrere Dateien auf einmal um, mit allen
    Prozessoren;
  * benennt Dateien nach ihren Schlagwörtern um.
"""
PACKAGES = "Package: soundconverter\nVersion: 4.0.3-1\nDescription-md5: df64ec8695eb6d4a89ca29f2bff306ee\n"


def one_entry(english: str = SOUNDCONVERTER_EN, german: str = SOUNDCONVERTER_DE) -> entries.Entry:
    (entry,) = entries.pair_entries(PACKAGES, english, german, "de")
    return entry


def pairs_of(entry: entries.Entry) -> list[tuple[str, str]]:
    return units.bitext(entry, "de", clean.LengthRatio([]))


def test_entries_pair_by_checksum_not_by_package_name() -> None:
    renamed = SOUNDCONVERTER_DE.replace("Package: soundconverter", "Package: soundconverter-gtk4")
    assert one_entry(german=renamed).target_synopsis is not None
    other = SOUNDCONVERTER_DE.replace("df64ec", "000000")
    assert one_entry(german=other).target_synopsis is None


def test_synopsis_sentences_and_list_items_become_pairs() -> None:
    assert pairs_of(one_entry()) == [
        (
            "GNOME application to convert audio files into other formats",
            "GNOME-Anwendung, um Audiodateien in andere Formate zu konvertieren",
        ),
        (
            "SoundConverter is a simple sound converter application for the GNOME environment.",
            "SoundConverter ist ein einfacher Soundkonverter für die GNOME-Umgebung.",
        ),
        (
            "It reads sound files in any format supported by GStreamer.",
            "Er liest Sounddateien in allen von GStreamer unterstützten Formaten.",
        ),
        ("Features:", "Funktionen:"),
        (
            "converts several files at once, using all processors;",
            "wandelt mehrere Dateien auf einmal um, mit allen Prozessoren;",
        ),
        ("renames files by their tags.", "benennt Dateien nach ihren Schlagwörtern um."),
    ]


def test_paragraph_stays_whole_where_one_side_has_more_sentences() -> None:
    joined = SOUNDCONVERTER_DE.replace("GNOME-Umgebung. Er\n liest", "GNOME-Umgebung und\n liest")
    assert (
        "SoundConverter is a simple sound converter application for the GNOME environment. It reads sound files in any "
        "format supported by GStreamer.",
        "SoundConverter ist ein einfacher Soundkonverter für die GNOME-Umgebung und liest Sounddateien in allen von "
        "GStreamer unterstützten Formaten.",
    ) in pairs_of(one_entry(german=joined))


def test_lists_of_different_length_give_no_items() -> None:
    shorter = SOUNDCONVERTER_DE.replace("  * benennt Dateien nach ihren Schlagwörtern um.\n", "")
    sources = [source for source, _ in pairs_of(one_entry(german=shorter))]
    assert "renames files by their tags." not in sources
    assert "It reads sound files in any format supported by GStreamer." in sources


def test_untranslated_and_placeholder_text_is_no_pair() -> None:
    untranslated = SOUNDCONVERTER_EN.replace("Description-en", "Description-de")
    assert pairs_of(one_entry(german=untranslated)) == []
    placeholder = SOUNDCONVERTER_DE.replace(
        "SoundConverter ist ein einfacher Soundkonverter für die GNOME-Umgebung. Er\n liest", "<trans>\n liest"
    )
    assert not any("<trans>" in target for _, target in pairs_of(one_entry(german=placeholder)))


def test_monolingual_text_leaves_out_what_was_not_translated() -> None:
    half = SOUNDCONVERTER_DE.replace("benennt Dateien nach ihren Schlagwörtern um.", "renames files by their tags.")
    german = units.target_mono(one_entry(german=half), "de")
    assert "renames files by their tags." not in german
    assert "Er liest Sounddateien in allen von GStreamer unterstützten Formaten." in german


def test_description_on_one_line_goes_with_its_synopsis() -> None:
    assert units.synopsis_pair(one_entry()) == (
        "SoundConverter is a simple sound converter application for the GNOME environment. It reads sound files in any "
        "format supported by GStreamer. Features: converts several files at once, using all processors; renames files "
        "by their tags.",
        "GNOME application to convert audio files into other formats",
    )


@pytest.mark.parametrize(
    ("line", "lang", "expected"),
    [
        ("It is fast. It is small.", "en", ["It is fast.", "It is small."]),
        ("Tools, e.g. Emacs, need it. See below.", "en", ["Tools, e.g. Emacs, need it.", "See below."]),
        ("Some (i.e. GIMP) use libpng 1.6. They link it.", "en", ["Some (i.e. GIMP) use libpng 1.6.", "They link it."]),
        ("Die 3. Version, z. B. für GIMP. Es ist alt.", "de", ["Die 3. Version, z. B. für GIMP.", "Es ist alt."]),
        ("It is written in C. It has no dependencies.", "en", ["It is written in C.", "It has no dependencies."]),
        ("xine is a player. libxine is its library.", "en", ["xine is a player. libxine is its library."]),
        ("Yahoo! is one. (See the manual.) Good.", "en", ["Yahoo! is one.", "(See the manual.)", "Good."]),
        ("これは辞書です。小さいです。", "ja", ["これは辞書です。", "小さいです。"]),
    ],
)
def test_sentences(line: str, lang: str, expected: list[str]) -> None:
    assert segment.sentences(line, lang) == expected


def test_wrapped_words_are_joined_at_their_hyphen_unless_a_part_was_left_out() -> None:
    blocks = segment.paragraphs(["Dieses Linux-", "Programm enthält Software-", "und Hardware-Listen."])
    assert blocks == [[segment.Block("text", "Dieses Linux-Programm enthält Software- und Hardware-Listen.")]]


def test_scripts_without_spaces_are_joined_without_one() -> None:
    (block,) = segment.paragraphs(["STEALTH モニ", "タには電子メールの", "XSUB を使う"])[0]
    assert block.text == "STEALTH モニタには電子メールの XSUB を使う"


def test_tables_and_rulers_are_no_text() -> None:
    lines = ["It has these modes:", "====", "    -x   0xFF", "    -y   0xEE", ".", "Then it ends."]
    texts = [block.text for blocks in segment.paragraphs(lines) for block in blocks]
    assert texts == ["It has these modes:", "Then it ends."]


def test_dash_in_running_text_is_no_list() -> None:
    blocks = segment.paragraphs(["This tool is fast", "- and small - too."])
    assert blocks == [[segment.Block("text", "This tool is fast - and small - too.")]]


@pytest.mark.parametrize(
    "junk",
    ["https://www.debian.org/", "", "<trans>", "----", "0x1F 0x2F 0x3F", "1.2.3", "{ 12, 13, 14 }", "word " * 101],
)
def test_what_is_no_language_is_dropped(junk: str) -> None:
    assert not clean.usable(text.tidy(junk))


def test_invisible_and_control_characters_go() -> None:
    assert text.tidy("Schrift\u00adart \u200bfu\u0308r\u0007 X\u00a0Window ") == "Schriftart für X Window"


def test_translation_of_another_length_is_no_translation() -> None:
    ratio = clean.LengthRatio([("a library", "eine Bibliothek")] * 3)
    assert clean.usable_pair("a library for reading fonts", "eine Bibliothek zum Lesen von Schriften", ratio)
    assert not clean.usable_pair("a library for reading fonts", "eine Bibliothek zum Lesen von Schriften " * 3, ratio)


@pytest.mark.parametrize(
    ("source", "family"),
    [
        ("gcc-12", "gcc"),
        ("gcc-11", "gcc"),
        ("gcc-12-cross-ports", "gcc"),
        ("gcc-defaults", "gcc"),
        ("llvm-toolchain-14", "llvm-toolchain"),
        ("php8.2", "php"),
        ("linux-signed-amd64", "linux"),
        ("linux", "linux"),
        ("postgresql-15", "postgresql"),
        ("0ad-data", "ad"),
        ("389-ds-base", "ds-base"),
        ("7", "7"),
    ],
)
def test_family_of_a_source_package(source: str, family: str) -> None:
    assert entries.family(source) == family


def test_family_comes_from_the_source_field_of_every_package_with_the_description() -> None:
    packages = (
        "Package: libgcc-12-dev\nSource: gcc-12 (12.2.0-14)\n\nPackage: lib32gcc-12-dev\nSource: gcc-12-cross (15)\n\n"
        "Package: soundconverter\n"
    )
    english = "\n".join(
        f"Package: {name}\nDescription-md5: 1234\nDescription-en: GCC support library\n Headers and so on.\n"
        for name in ("libgcc-12-dev", "lib32gcc-12-dev", "libgcc-12-dev-arm64-cross")
    )
    (entry,) = entries.pair_entries(packages, english, "", "de")
    assert entry.families == ("gcc", "libgcc-dev-arm")  # the last is in no index: its own name


def test_numbers_and_case_do_not_tell_texts_apart() -> None:
    assert text.key("GCC 12.2 support library (32bit)") == text.key("gcc 11 Support Library (64bit)")
    assert text.key("GCC support library") != text.key("GCC support libraries")
