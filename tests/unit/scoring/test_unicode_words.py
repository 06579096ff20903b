"""ROUGE of text in other scripts than Latin: words of Unicode, characters where a script has no spaces."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.scoring import rouge, rouge_significance
from lmfusion.scoring.unicode_words import UNICODE, UnicodeTokenizer, kind_of

GREEK = "η γάτα κάθεται στο χαλί", "η γάτα κοιμάται στο χαλί"
TOKENIZER = UnicodeTokenizer(lambda word: word)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Η Γάτα, κάθεται.", ["η", "γάτα", "κάθεται"]),
        ("القطُّ على السجادة؟", ["القطُّ", "على", "السجادة"]),
        ("የኢትዮጵያ፡ሰዎች።", ["የኢትዮጵያ", "ሰዎች"]),
        ("हिन्दी की भाषा।", ["हिन्दी", "की", "भाषा"]),
        ("ที่นี่", ["ที่", "นี่"]),
        ("東京タワー 2024年", ["東", "京", "タ", "ワ", "ー", "2024", "年"]),
        ("iPhone手机", ["iphone", "手", "机"]),
        ("می‌روم", ["می‌روم"]),
        ("፡ ። \u0301", []),
    ],
)
def test_words_are_runs_of_letters_with_their_marks_or_single_characters(text: str, words: list[str]) -> None:
    assert TOKENIZER.tokenize(text) == words


def test_canonically_equal_texts_have_the_same_words() -> None:
    text = "Й и ё в городе"
    assert TOKENIZER.tokenize(unicodedata.normalize("NFD", text)) == TOKENIZER.tokenize(text)


@pytest.mark.parametrize("like", rouge.LIKE)
def test_greek_has_the_scores_of_its_words(like: str) -> None:
    ours = rouge.score([GREEK[0]], [GREEK[1]], like=like, words=UNICODE)
    assert ours.per_pair[0]["rouge1"].f1 == pytest.approx(4 / 5)
    assert ours.per_pair[0]["rouge2"].f1 == pytest.approx(2 / 4)
    assert ours.per_pair[0]["rougeL"].f1 == pytest.approx(4 / 5)
    assert rouge.words_of(ours.signature) == "unicode"
    assert ours.hypothesis_sentences == 1


def test_thai_has_the_scores_of_its_characters() -> None:
    ours = rouge.score(["กขคง"], ["กขคจ"], words=UNICODE)
    assert ours.means["rouge1"].recall == pytest.approx(3 / 4)


def test_english_words_within_another_script_are_stemmed() -> None:
    ours = rouge.score(["ο υπολογιστής computers είναι"], ["ο υπολογιστής computer είναι"], words=UNICODE)
    assert ours.means["rouge1"].f1 == 1.0


@pytest.mark.parametrize("text", ["Die Tür ist größer als früher.", "The word λόγος is Greek.", "Tiếng Việt", "1234 …"])
def test_latin_text_keeps_the_words_of_the_script(text: str) -> None:
    assert kind_of([text]) == "ascii"
    assert "words" not in rouge.score([text], [text]).signature


def test_a_few_foreign_letters_do_not_change_the_words() -> None:
    assert kind_of(["the cat sits", "λόγος"]) == "ascii"
    assert kind_of(["the cat", "λόγος και άλλα"]) == "unicode"


@pytest.mark.parametrize("words", ["ascii", "unicode"])
def test_words_of_ascii_letters_alone_are_warned_of_in_another_script(
    words: str, caplog: pytest.LogCaptureFixture
) -> None:
    rouge.score([GREEK[0]], [GREEK[1]], words=words)
    assert bool(caplog.records) == (words == "ascii")


def test_the_command_scores_greek_by_its_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, text in zip(("hyp", "ref"), GREEK):
        (tmp_path / name).write_text(text + "\n", encoding="utf-8")
    words = ["score", "rouge", "--json", *("--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref"))]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["rouge1"]["f1"]["mean"] == pytest.approx(0.8)


def test_marker_and_words_come_back_from_the_signature() -> None:
    signed = rouge.score([GREEK[0]], [GREEK[1]], None, words=UNICODE).signature
    assert (rouge.marker_of(signed), rouge.words_of(signed)) == (None, "unicode")


def test_a_difference_in_greek_is_tested_by_the_same_words() -> None:
    tested = rouge_significance.paired_bootstrap(
        [GREEK[0]] * 3, {"ours": [GREEK[1]] * 3}, [GREEK[1]] * 3, words=UNICODE
    )
    found = {(each.name, each.metric): each.f1 for each in tested}
    assert found["baseline", "rouge1"] == pytest.approx(80)
    assert found["ours", "rouge1"] == pytest.approx(100)


def test_a_score_of_earlier_versions_is_tested_as_it_was_computed() -> None:
    old = [GREEK[1]] * 2
    tested = rouge_significance.paired_bootstrap(old, {"ours": old}, old)
    assert {each.f1 for each in tested} == {0.0}
