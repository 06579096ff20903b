"""Parts of a test set: which sentences they hold, and their BLEU beside sacreBLEU's own."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path

import pytest
import sacrebleu

import lmfusion
from lmfusion import cli
from lmfusion.scoring.buckets import COPIES, LENGTH, PHRASES, RARITY, copied, names_of, parts, score, untranslated

SOURCES = ["Install LibreOffice 7 now .", "a dog", " ".join(["word"] * 25), "the cat sees the dog"]
TARGETS = ["Installiere jetzt LibreOffice 7 .", "ein Hund", " ".join(["Wort"] * 25), "die Katze sieht den Hund"]
SYSTEMS = {
    "baseline": ["Installiere jetzt Libre .", "ein Hund", " ".join(["Wort"] * 9), "die Katze den Hund"],
    "mix": ["Installiere LibreOffice jetzt .", "der Hund", " ".join(["Wort"] * 20), "die Katze sieht den Hund"],
}
TRAINING = ["ein Hund"] * 5 + ["Wort die Katze den Hund"] * 6
LM_TEXT = ["er sagt die Katze sieht den Hund nicht", "Installiere jetzt"]


def lines_of(question: str) -> dict[str, tuple[int, ...]]:
    """The sentences of each part of a question."""
    found = parts(SOURCES, TARGETS, training_targets=TRAINING, lm_text=LM_TEXT)
    return {part.name: part.lines for part in found if part.question == question}


def test_sentences_stand_where_they_belong() -> None:
    assert list(lines_of(LENGTH).values()) == [(0, 1, 3), (2,)]
    assert lines_of(RARITY) == {"no rare word": (1, 2), "one": (3,), "two or more": (0,)}
    assert list(lines_of(COPIES).values()) == [(1, 2, 3), (0,)]
    assert list(lines_of(PHRASES).values()) == [(0, 1, 2), (3,)]


def test_a_sentence_as_long_as_a_part_ends_is_in_it() -> None:
    sources = [" ".join(count * ["word"]) for count in (10, 11, 30, 31)]
    lengths = {part.name: part.lines for part in parts(sources, sources) if part.question == LENGTH}
    assert lengths == {"1 to 10": (0,), "11 to 20": (1,), "21 to 30": (2,), "31 or more": (3,)}


def test_every_sentence_stands_in_one_part_of_each_question() -> None:
    for question in (LENGTH, RARITY, COPIES, PHRASES):
        assert sorted(line for lines in lines_of(question).values() for line in lines) == [0, 1, 2, 3]


def test_what_cannot_be_asked_is_left_out() -> None:
    assert {part.question for part in parts(SOURCES, TARGETS)} == {LENGTH, COPIES}


def test_bleu_of_a_part_is_sacrebleus_of_its_sentences() -> None:
    for found in score(parts(SOURCES, TARGETS, lm_text=LM_TEXT), SYSTEMS, TARGETS):
        for name, hypotheses in SYSTEMS.items():
            chosen, references = ([text[line] for line in found.part.lines] for text in (hypotheses, TARGETS))
            expected = sacrebleu.corpus_bleu(chosen, [references]).score
            assert found.bleu[name] == pytest.approx(expected, abs=1e-6)


def test_names_are_words_with_capitals_that_both_sides_have() -> None:
    assert names_of(SOURCES[0], TARGETS[0]) == {"LibreOffice"}
    assert names_of("OK : GNU", "OK : GNU") == {"GNU"}, "two letters are no name"
    shares = {name: copied(SOURCES, TARGETS, hypotheses) for name, hypotheses in SYSTEMS.items()}
    assert shares == {"baseline": 0.0, "mix": 1.0}


def test_untranslated_words_stand_in_the_source_and_not_in_the_reference() -> None:
    hypotheses = ["Install LibreOffice 7 now .", "ein dog dog", "Wort", "die Katze sees den Hund"]
    # Install, now of three words with letters; dog twice of three; none of one; sees of five
    assert untranslated(SOURCES, TARGETS, hypotheses) == pytest.approx(5 / 12)
    assert math.isnan(untranslated(["1"], ["2"], ["3 ."]))


def test_text_without_spaces_is_divided_by_its_characters() -> None:
    sources = ["画像を表示する", "GNUの画像を表示するプログラムです。", "ภาพนี้ดี"]
    references = ["shows images", "a GNU program that shows images.", "a good image"]
    lengths = {part.name: part.lines for part in parts(sources, references) if part.question == LENGTH}
    assert lengths == {"1 to 10": (0, 2), "11 to 20": (1,)}, "7; GNU, 15 characters and a stop; 5 with their marks"
    assert names_of(sources[1], references[1]) == {"GNU"}
    divided = parts(references, sources, training_targets=["画像を表示する"] * 5)
    assert [part.lines for part in divided if part.question == RARITY] == [(0,), (1, 2)]


def test_the_command_writes_table_and_figure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in {"src": SOURCES, "ref": TARGETS, **SYSTEMS, "train": TRAINING}.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    hyp = [f"{name}={tmp_path / name}" for name in SYSTEMS]
    words = ["score", "buckets", "--hyp", *hyp, "--src", f"{tmp_path / 'src'}", "--ref", f"{tmp_path / 'ref'}"]
    cli.main([*words, "--train", f"{tmp_path / 'train'}", "--out", f"{tmp_path / 'out'}"])
    table = capsys.readouterr().out
    assert table.count(f"| {RARITY}: ") == 3
    svg = (tmp_path / "out" / "buckets.svg").read_text(encoding="utf-8")
    assert {"mix", RARITY, "two or more (1)"} <= set(re.findall(r">([^<>]+)</text>", svg))
    cli.main([*words, "--json", "--out", f"{tmp_path / 'out'}"])
    found = json.loads(capsys.readouterr().out)
    assert found["names copied"] == {"baseline": 0.0, "mix": 1.0}
    assert cli.main([*words, "--out", ""]) == 2
    capsys.readouterr()
    assert cli.main([*words[:3], hyp[0], *words[5:]]) == 2
    assert "two systems" in capsys.readouterr().err


def test_plain_text_without_words_is_refused() -> None:
    """Else every sentence would count as one that the language model has not read."""
    with pytest.raises(lmfusion.InputError, match="--lm-text"):
        parts(SOURCES, TARGETS, lm_text=["", " "])


def test_other_numbers_of_sentences_are_refused() -> None:
    with pytest.raises(lmfusion.InputError, match="short has 2"):
        score(parts(SOURCES, TARGETS), {"short": ["a", "b"]}, TARGETS)


def test_without_names_no_share_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = {name: tmp_path / name for name in ("src", "ref", "one", "two")}
    for path in files.values():
        path.write_text("ein kleiner hund\nzwei katzen\n", encoding="utf-8")
    words = ["score", "buckets", "--hyp", f"a={files['one']}", f"b={files['two']}", "--src", str(files["src"])]
    words += ["--ref", str(files["ref"])]
    assert cli.main([*words, "--json"]) == 0

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found = json.loads(capsys.readouterr().out, parse_constant=refuse)
    assert found["names copied"] == {"a": None, "b": None}
    assert set(found["words left"]) == {"a", "b"}
    assert cli.main(words) == 0
    assert "nan" not in capsys.readouterr().out


def test_training_targets_without_words_make_no_word_rare() -> None:
    with pytest.raises(lmfusion.InputError, match="--train"):
        parts(SOURCES, TARGETS, training_targets=[])


def test_a_language_pair_without_a_target_is_refused() -> None:
    divided = parts(SOURCES, TARGETS)
    with pytest.raises(lmfusion.InputError, match="--language-pair zh"):
        score(divided, SYSTEMS, TARGETS, "zh")
