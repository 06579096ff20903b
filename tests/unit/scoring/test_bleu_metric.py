"""BLEU of languages without spaces between words: sacreBLEU's tokenization for them, or characters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sacrebleu

from lmfusion.cli import main
from lmfusion.errors import InputError
from lmfusion.scoring import bleu
from lmfusion.scoring.bleu_metric import tokenizer_for, tokenizer_of

THAI = ["แมวนั่งบนเสื่อ"], ["แมวนอนบนเสื่อ"]
CHINESE = ["猫坐在垫子上。"], ["那只猫坐在垫子上。"]


@pytest.mark.parametrize("language", ["de", "en", "fr", "ru", "tr", "cs", "synopsis", "", "el", "ar", "vi", "summary"])
def test_languages_with_spaces_keep_the_default(language: str) -> None:
    assert tokenizer_for(language) == sacrebleu.BLEU.TOKENIZER_DEFAULT


@pytest.mark.parametrize(
    ("language", "name"),
    [("zh", "zh"), ("zh_TW", "zh"), ("th", "char"), ("km", "char"), ("mya", "char"), ("lzh", "char")],
)
def test_languages_without_spaces(language: str, name: str) -> None:
    assert tokenizer_for(language) == name


def test_japanese_counts_characters_where_the_extra_is_missing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lmfusion.scoring.bleu_metric.find_spec", lambda name: None)
    assert tokenizer_for("ja") == "char"
    assert "sacrebleu[ja]" in caplog.text


def test_japanese_counts_words_where_the_extra_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmfusion.scoring.bleu_metric.find_spec", lambda name: object())
    assert tokenizer_for("jpn") == "ja-mecab"


@pytest.mark.parametrize(("pair", "texts"), [("en-th", THAI), ("en-zh", CHINESE)])
def test_the_score_is_sacrebleus(pair: str, texts: tuple[list[str], list[str]]) -> None:
    hypotheses, references = texts
    tokenizer = tokenizer_for(pair[3:])
    ours = bleu.score(hypotheses, references, language_pair=pair)
    assert ours.bleu == sacrebleu.corpus_bleu(hypotheses, [references], tokenize=tokenizer).score
    assert ours.bleu > 10 > bleu.score(hypotheses, references).bleu
    assert tokenizer_of(ours.signature) == tokenizer


def test_a_test_with_the_signatures_tokenization_has_its_score() -> None:
    ours = bleu.score(*THAI, language_pair="en-th")
    tested = bleu.paired_bootstrap(THAI[0], {"b": THAI[1]}, THAI[1], 10, tokenizer=tokenizer_of(ours.signature))
    assert tested[0].bleu == pytest.approx(ours.bleu)


@pytest.mark.parametrize(
    ("named", "found"), [("13a", "13a"), ("ja-mecab-0.996-IPA", "ja-mecab"), ("flores200", None), ("spm", None)]
)
def test_only_what_needs_no_download_is_read_from_a_signature(named: str, found: str | None) -> None:
    assert tokenizer_of(f"BLEU|nrefs:1|case:mixed|tok:{named}|smooth:exp|version:2.6.0") == found


def test_the_command_takes_a_language_pair_with_references_of_ones_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, lines in zip(("hyp", "ref"), CHINESE):
        (tmp_path / name).write_text(lines[0] + "\n", encoding="utf-8")
    files = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "ref")]
    assert main(["score", "bleu", "--json", *files, "--language-pair", "en-zh"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["bleu"] == bleu.score(*CHINESE, language_pair="en-zh").bleu
    assert "tok:zh" in found["signature"]


def test_a_tokenization_that_sacrebleu_does_not_have_is_named() -> None:
    with pytest.raises(InputError, match=r"'14a'.*13a"):
        bleu.score(["a"], ["a"], tokenizer="14a")
