"""BLEU of files finds words by the language of the references' ending, and says where it cannot."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest
import sacrebleu

from lmfusion.cli import main
from lmfusion.scoring.unicode_words import SPACELESS, share_of_letters

JAPANESE = (
    ["猫はマットの上に座っています。", "昨日は雨が降りました。"],
    ["猫はマットの上で寝ています。", "昨日は雨が降った。"],
)
CHINESE = ["猫坐在垫子上。", "昨天下雨了。"], ["那只猫坐在垫子上。", "昨天下了雨。"]
THAI = ["แมวนั่งบนเสื่อ", "เมื่อวานฝนตก"], ["แมวนอนบนเสื่อ", "เมื่อวานฝนตกหนัก"]
KOREAN = ["고양이가 매트 위에 앉아 있습니다.", "어제 비가 왔다."], ["고양이는 매트 위에서 잔다.", "어제는 비가 왔다."]
GERMAN = ["die Katze sitzt auf der Matte .", "es hat geregnet ."], ["die Katze liegt auf der Matte .", "es regnete ."]
Score = Callable[..., "tuple[float, str, str]"]


@pytest.fixture
def score(tmp_path: Path, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture) -> Score:
    """Scores texts whose reference has a name; returns BLEU, the tokenization, and what was warned of."""

    def run(texts: tuple[list[str], list[str]], name: str, *flags: str) -> tuple[float, str, str]:
        for path, lines in zip((tmp_path / "hyp", tmp_path / name), texts):
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        words = ["score", "bleu", "--json", "--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / name), *flags]
        caplog.clear()
        assert main(words) == 0
        found = json.loads(capsys.readouterr().out)
        return found["bleu"], found["signature"].split("tok:")[1].split("|")[0], caplog.text

    return run


@pytest.fixture
def no_mecab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lmfusion.scoring.bleu_metric.find_spec", lambda name: None)


@pytest.mark.usefixtures("no_mecab")
@pytest.mark.parametrize(
    ("texts", "name", "tokenizer"),
    [
        (JAPANESE, "ref.ja", "char"),
        (CHINESE, "ref.zh", "zh"),
        (CHINESE, "r.zh_CN", "zh"),
        (CHINESE, "r.zh-Hant", "zh"),
        (THAI, "ref.th", "char"),
        (KOREAN, "ref.ko", "char"),
    ],
)
def test_the_ending_says_how_words_are_found(
    score: Score, texts: tuple[list[str], list[str]], name: str, tokenizer: str
) -> None:
    theirs = sacrebleu.corpus_bleu(texts[0], [texts[1]], tokenize=tokenizer).score
    assert score(texts, name)[:2] == (theirs, tokenizer)
    assert theirs != sacrebleu.corpus_bleu(texts[0], [texts[1]]).score


@pytest.mark.parametrize(
    ("texts", "name"), [(JAPANESE, "ref"), (CHINESE, "ref.txt"), (THAI, "ref.de"), (KOREAN, "ref")]
)
def test_without_such_an_ending_text_without_spaces_is_warned_of(
    score: Score, texts: tuple[list[str], list[str]], name: str
) -> None:
    bleu, tokenizer, warned = score(texts, name)
    assert (bleu, tokenizer) == (sacrebleu.corpus_bleu(texts[0], [texts[1]]).score, "13a")
    assert "--language-pair" in warned
    assert name in warned
    assert warned.count("\n") == 1


@pytest.mark.parametrize("name", ["ref", "ref.de", "ref.lo", "ref.my", "ref.zh"])
def test_latin_text_is_scored_as_before_whatever_its_ending(score: Score, name: str) -> None:
    assert score(GERMAN, name) == (sacrebleu.corpus_bleu(GERMAN[0], [GERMAN[1]]).score, "13a", "")


def test_a_language_pair_goes_before_the_ending(score: Score) -> None:
    assert score(CHINESE, "ref.zh", "--language-pair", "en-th")[1:] == ("char", "")
    assert score(CHINESE, "ref.zh", "--language-pair", "zh-en")[1:] == ("13a", "")


def test_the_paired_test_counts_as_the_score_does(
    tmp_path: Path, score: Score, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "base").write_text("\n".join(CHINESE[1]) + "\n", encoding="utf-8")
    words = ["--hyp", str(tmp_path / "hyp"), "--ref", str(tmp_path / "r.zh"), "--baseline", str(tmp_path / "base")]
    bleu, *_ = score(CHINESE, "r.zh")
    assert main(["score", "bleu", "--json", *words]) == 0
    tested = json.loads(capsys.readouterr().out)["paired"]
    assert [each["bleu"] for each in tested] == pytest.approx([100, bleu])


def test_rows_of_seeds_count_by_the_ending(tmp_path: Path, score: Score, capsys: pytest.CaptureFixture[str]) -> None:
    bleu, *_ = score(CHINESE, "r.zh_CN")
    hyp, ref = str(tmp_path / "hyp"), str(tmp_path / "r.zh_CN")
    assert main(["score", "seeds", "--json", "--hyp", hyp, "--baseline", ref, "--ref", ref]) == 0
    found, _ = json.loads(capsys.readouterr().out)
    assert found["difference"] == pytest.approx(bleu - 100)
    assert "tok:zh" in found["signature"]


def test_parts_of_a_test_set_count_by_the_ending_of_a_compressed_file(
    tmp_path: Path, score: Score, capsys: pytest.CaptureFixture[str]
) -> None:
    bleu, *_ = score(CHINESE, "r.zh")
    (tmp_path / "src").write_text("The cat sits on the mat.\nIt rained.\n", encoding="utf-8")
    with gzip.open(tmp_path / "r.zh.gz", "wt", encoding="utf-8") as stream:
        stream.write("\n".join(CHINESE[1]) + "\n")
    files = ["--src", str(tmp_path / "src"), "--ref", str(tmp_path / "r.zh.gz")]
    systems = [f"a={tmp_path / 'hyp'}", f"b={tmp_path / 'hyp'}"]
    assert main(["score", "buckets", "--json", "--hyp", *systems, *files]) == 0
    (whole,) = (each for each in json.loads(capsys.readouterr().out)["bleu"] if each["question"].startswith("words in"))
    assert whole["a"] == pytest.approx(bleu)


def test_the_language_that_is_detokenized_is_the_targets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = [
        f"S-{n}\tx\nT-{n}\t{ref}\nH-{n}\t-0.1\t{hyp}\nD-{n}\t-0.1\t{hyp}\n"
        for n, (hyp, ref) in enumerate(zip(*CHINESE))
    ]
    (tmp_path / "log").write_text("".join(lines), encoding="utf-8")
    assert main(["score", "bleu", "--json", "--generate", str(tmp_path / "log"), "--detokenize", "zh"]) == 0
    assert "tok:zh" in json.loads(capsys.readouterr().out)["signature"]


@pytest.mark.parametrize(
    ("texts", "share"), [(["日本語 abc", "x"], 3 / 7), (["abc"], 0), ([], 0), (["12 !"], 0), (["ไทย"], 1)]
)
def test_the_share_of_letters_without_spaces(texts: list[str], share: float) -> None:
    assert share_of_letters(texts, SPACELESS) == share
