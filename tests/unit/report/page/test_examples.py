"""Outputs side by side, and where their texts come from."""

from __future__ import annotations

import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.errors import InputError
from lmfusion.report.page import examples, texts
from lmfusion.report.page.examples import Piece, make_examples, mark
from lmfusion.report.page.notices import WARNING, Notices
from lmfusion.runs import provenance

SOURCES = ["one small house", "two old trees", "three green birds"]
REFERENCES = ["das ist ein kleines Haus", "das sind zwei alte Bäume", "das sind drei grüne Vögel"]
PRINTED = "".join(f"S-{n}\t{SOURCES[n]}\nT-{n}\t{REFERENCES[n]}\nH-{n}\t-0.1\t▁x\nD-{n}\t-0.1\tx\n" for n in (2, 0, 1))


def marked(text: str, reference: str) -> str:
    """The text with [ ] around what is marked."""
    return "".join(f"[{piece.text}]" if piece.marked else piece.text for piece in mark(text, reference))


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("ein kleines Haus", "ein kleines Haus", "ein kleines Haus"),
        ("ein großes Haus", "ein kleines Haus", "ein [großes] Haus"),
        ("ein sehr großes Haus", "ein Haus", "ein [sehr großes] Haus"),
        ("Haus", "ein kleines Haus", "Haus"),
        ("ganz anders", "ein Haus", "[ganz anders]"),
        ("Haus ein", "ein Haus", "[Haus] ein"),
        ("ein Haus.", "ein Haus", "ein Haus[.]"),
        ("GUI-Programm", "GUI-Werkzeug", "GUI-[Programm]"),
        ("Ein Haus", "ein Haus", "[Ein] Haus"),
        ("  ein   Haus ", "ein Haus", "  ein   Haus "),
        ("", "ein Haus", ""),
        ("नमस्ते दुनिया", "नमस्ते मित्र", "नमस्ते [दुनिया]"),
        ("บ้านเล็ก", "บ้านใหญ่", "บ้าน[เล็ก]"),
    ],
)
def test_words_that_the_reference_does_not_have_there_are_marked(text: str, reference: str, expected: str) -> None:
    assert marked(text, reference) in (expected, expected.replace("[Haus] ein", "Haus [ein]"))
    assert "".join(piece.text for piece in mark(text, reference)) == text


def test_neighbours_are_one_piece() -> None:
    assert mark("a b c d", "a d") == [Piece("a ", False), Piece("b c", True), Piece(" d", False)]


def record_texts(path: Path, source: Path, reference: Path) -> None:
    """Name the texts in scores.json as the scoring step does."""
    scores = json.loads((path / "scores.json").read_text())
    for name, text in (("source", source), ("reference", reference)):
        scores["test"].update({name: str(text), f"{name}_sha256": provenance.hash_file(text)})
    (path / "scores.json").write_text(json.dumps(scores))


@pytest.fixture
def recorded(maker) -> list[Path]:
    """A baseline and a rival whose scores name their texts."""
    paths = [maker.run("base", bleu=10.0, seed=2), maker.run("elmo", "src_elmo", bleu=12.0)]
    for path in paths:
        record_texts(path, *maker.texts())
    return paths


def find(comparison, notices=None, **given) -> texts.Texts | None:
    arguments = {"source": None, "reference": None, **given}
    return texts.find_texts(comparison, arguments["source"], arguments["reference"], notices or Notices())


def test_the_texts_that_the_scores_name_are_shown(recorded, maker, compared) -> None:
    ((comparison,), _) = compared(*recorded)
    found = find(comparison)
    assert (found.sources, found.references, found.raw_source, found.raw_reference) == (SOURCES, REFERENCES, True, True)
    shown = make_examples(comparison, 2500, found, 10)
    assert [(item.number, item.source, item.reference) for item in shown.items] == [
        (n + 1, SOURCES[n], REFERENCES[n]) for n in range(3)
    ]
    assert [name for name, _ in shown.items[0].systems] == ["baseline", "SRC-ELMO"]
    assert "".join(piece.text for piece in shown.items[0].systems[0][1]) == "das ist ein kleines Hans"
    assert [piece.text for piece in shown.items[0].systems[0][1] if piece.marked] == ["Hans"]
    assert "baseline (seed 2), SRC-ELMO (seed 1)" in shown.caption
    assert "fairseq-generate printed" not in shown.caption


def test_as_many_examples_as_asked_for_at_equal_distances(recorded, compared) -> None:
    ((comparison,), _) = compared(*recorded)
    found = find(comparison)
    assert [item.number for item in make_examples(comparison, 2500, found, 1).items] == [2]
    assert make_examples(comparison, 2500, found, 0) is None
    assert make_examples(comparison, 9, found, 3) is None, "no run of this size"


def test_markdown_examples_have_marks_in_bold_and_no_markup_of_their_own(recorded, compared) -> None:
    (recorded[0] / "test.hyp").write_text("ein *kleines* Hans\nzwei\n<b>drei</b> | Vögel\n")
    ((comparison,), _) = compared(*recorded)
    text = examples.to_markdown(make_examples(comparison, 2500, find(comparison), 3))
    assert "| baseline | ein **\\***kleines**\\* Hans** |" in text
    assert "&lt;b&gt;" in text.replace("**", "")
    assert "\\|" in text


class Places(HTMLParser):
    """Collects the language and direction of a page's sources, references and outputs."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str | None, str | None]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "dd":
            self.found.append((dict(attrs).get("lang"), dict(attrs)["dir"]))


@pytest.mark.parametrize(
    ("pair", "languages"),
    [(("ja", "zh_CN"), ("ja", "zh-CN", "zh-CN")), (("text", "summary"), (None, None, None))],
)
def test_the_page_says_the_languages_of_its_texts(
    maker, tmp_path: Path, pair: tuple[str, str], languages: tuple[str | None, ...]
) -> None:
    maker.pair = pair
    path = maker.run("base", bleu=10.0)
    record_texts(path, *maker.texts())
    assert main(["report", str(path), "--out", str(tmp_path / "out"), "--no-significance", "--examples", "2"]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert Places(page).found == 2 * [(language, "auto") for language in languages]


@pytest.mark.parametrize(
    ("references", "marks"),
    [
        (["昨日は雨が降った。"] * 3, "characters"),
        (["เมื่อวานฝนตก"] * 3, "characters"),
        (["어제 비가 왔다."] * 3, "words"),
        (REFERENCES, "words"),
        (["漢字 in a sentence", *REFERENCES[1:]], "words"),
    ],
)
def test_the_caption_says_what_is_marked(recorded, compared, references: list[str], marks: str) -> None:
    ((comparison,), _) = compared(*recorded)
    caption = make_examples(comparison, 2500, replace(find(comparison), references=references), 1).caption
    other = {"characters": "words", "words": "characters"}[marks]
    assert marks in caption
    assert other not in caption


def test_a_text_that_was_changed_or_is_gone_is_not_shown_as_the_one_that_was_scored(recorded, maker, compared) -> None:
    source, reference = maker.texts()
    reference.write_text("something else\n" * 3)
    source.unlink()
    (recorded[0] / "generate.log").write_text(PRINTED, encoding="utf-8")
    ((comparison,), _) = compared(*recorded)
    found = find(comparison)
    assert (found.sources, found.references) == (SOURCES, REFERENCES), "what fairseq-generate printed, in order"
    assert (found.raw_source, found.raw_reference) == (False, False)
    caption = make_examples(comparison, 2500, found, 1).caption
    assert "As fairseq-generate printed it, not the raw text: source and reference." in caption


def test_texts_beside_a_folder_that_was_moved_are_found(recorded, maker, compared) -> None:
    moved = maker.folder / "data" / "text"
    moved.mkdir(parents=True)
    for path in maker.texts():
        path.rename(moved / path.name)
    ((comparison,), _) = compared(*recorded)
    assert find(comparison).raw_reference


def test_without_texts_there_are_no_examples_and_it_is_said(maker, compared) -> None:
    ((comparison,), _) = compared(maker.run("base", bleu=1.0))
    notices = Notices()
    assert find(comparison, notices) is None
    assert "Give them with --source and --reference." in notices.of_kind(WARNING)[0].text


def test_texts_may_be_given_by_hand(maker, compared) -> None:
    source, reference = maker.texts()
    entry = {**maker.bleu(1.0), "reference_sha256": provenance.hash_file(reference)}
    ((comparison,), _) = compared(maker.run("base", scores={"test": entry}))
    assert texts.is_reference_of(comparison, reference)
    assert find(comparison, source=source, reference=reference).references == REFERENCES
    assert not texts.is_reference_of(comparison, source)
    with pytest.raises(InputError, match="there is no such file"):
        texts.is_reference_of(comparison, maker.folder / "nowhere")
