"""Outputs side by side, where their texts come from, and whether a difference is more than chance."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.report.page import examples, texts
from lmfusion.report.page.examples import Piece, make_examples, mark
from lmfusion.report.page.notices import WARNING, Notices
from lmfusion.report.page.significance import significance_table
from lmfusion.runs import provenance
from lmfusion.scoring import bleu
from lmfusion.scoring.rouge_significance import paired_bootstrap

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


def test_significance_is_the_paired_bootstrap_of_each_seed_against_the_baselines(maker, compared) -> None:
    worse = ["das ist ein kleines Hans", "zwei Bäume", "drei Vögel"]
    outputs = {("base", 1): worse, ("ft", 1): REFERENCES, ("base", 2): worse, ("ft", 2): [*worse[:2], REFERENCES[2]]}
    source, reference = maker.texts()
    for (name, seed), lines in outputs.items():
        path = maker.run(f"{name}-{seed}", {"base": "baseline", "ft": "src_ft"}[name], bleu=1.0, seed=seed)
        (path / "test.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        record_texts(path, source, reference)
    ((comparison,), _) = compared(maker.folder)
    table = significance_table(comparison, find(comparison), Notices())
    rows = [[cell.text for cell in row] for row in table.rows]
    for seed, row in ((1, rows[1]), (2, rows[3])):
        baseline, rival = bleu.paired_bootstrap(worse, {"ft": outputs["ft", seed]}, REFERENCES)
        assert 10 < baseline.bleu < rival.bleu
        assert row == [
            *("SRC-FT", "2.5K", str(seed), "BLEU", f"{rival.bleu:.2f}"),
            f"{rival.mean - rival.ci:.2f} to {rival.mean + rival.ci:.2f}",
            *(f"+{rival.bleu - baseline.bleu:.2f}", f"{rival.p_value:.4f}"),
        ]
    assert [row[2].text for row in table.rows] == ["1", "1", "2", "2"]
    assert rival.signature in table.notes[0]


def test_significance_of_summaries_is_told_for_each_metric_of_rouge_and_for_lead(maker, compared) -> None:
    worse, better = ["das Hans", "zwei Bäume", "drei Vögel"], [REFERENCES[0], "zwei alte", "drei Vögel"]
    source, reference = maker.texts()
    lead = {"steps": {"generate": maker.step("python data-prep/lead.py texts --sentences 1", {"sentences": 3}, 2500)}}
    for row, lines, record in (("baseline", worse, {}), ("src_ft", better, {}), ("lead", SOURCES, lead)):
        path = maker.run(row, row, scores={"test": maker.rouge(0.1, 0.1, 0.1)}, **record)
        (path / "test.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        record_texts(path, source, reference)
    ((comparison,), _) = compared(maker.folder)
    table = significance_table(comparison, find(comparison), Notices())
    rows = {(row[0].text, row[3].text): [cell.text for cell in row[4:]] for row in table.rows}
    expected = paired_bootstrap(worse, {"SRC-FT": better}, REFERENCES, None)
    for base, ours in zip(expected[:3], expected[3:]):
        metric = f"ROUGE-{ours.metric[5:]}"
        assert rows["baseline", metric][0] == f"{base.f1:.2f}"
        assert rows["baseline", metric][2:] == ["", ""]
        assert rows["SRC-FT", metric] == [
            f"{ours.f1:.2f}",
            f"{ours.mean - ours.ci:.2f} to {ours.mean + ours.ci:.2f}",
            *(f"{ours.f1 - base.f1:+.2f}", f"{ours.p_value:.4f}"),
        ]
    assert len(rows) == 9, "lead too"
    assert expected[0].signature in table.notes[0]


def test_nothing_is_said_of_significance_without_the_text_that_was_scored(recorded, maker, compared) -> None:
    for path in maker.texts():
        path.unlink()
    (recorded[0] / "generate.log").write_text(PRINTED, encoding="utf-8")
    ((comparison,), _) = compared(*recorded)
    notices = Notices()
    assert significance_table(comparison, find(comparison), notices) is None
    assert "nothing is said of significance" in notices.of_kind(WARNING)[0].text


def test_significance_needs_the_reference_only(maker, compared) -> None:
    source, reference = maker.texts()
    for name in ("baseline", "src_ft"):
        record_texts(maker.run(name, name, bleu=1.0), source, reference)
    source.unlink()
    ((comparison,), _) = compared(maker.folder)
    notices = Notices()
    found = find(comparison, notices)
    assert (found.sources, found.references) == ([], REFERENCES)
    assert len(significance_table(comparison, found, notices).rows) == 2
    (warning,) = notices.of_kind(WARNING)
    assert "so there are no examples" in warning.text
