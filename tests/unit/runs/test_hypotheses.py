"""fairseq-generate's log in a run folder -> test.hyp and scores.json, for translations and for summaries."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path

import pytest

from lmfusion.runs import hypotheses
from lmfusion.scoring import bleu, rouge

GENERATED = """S-1\t▁x
T-1\t▁y
H-1\t-0.1\t▁the ▁cat ▁sat ▁on ▁it
D-1\t-0.1\tthe cat sat on it
S-0\t▁x
T-0\t▁y
H-0\t-0.1\t▁a ▁dog ▁r an
D-0\t-0.1\ta dog ran
"""
HYPOTHESES = ["a dog ran", "the cat sat on it"]
REFERENCES = ["a dog runs", "the cat sat on a mat"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "generate.log").write_text(GENERATED, encoding="utf-8")
    (tmp_path / "ref").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    return folder


def call(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> int:
    monkeypatch.setattr(sys, "argv", ["hypotheses", *map(str, arguments)])
    return hypotheses.main()


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], bleu.score(HYPOTHESES, REFERENCES).to_dict()),
        (["--target-lang", "de"], bleu.score(HYPOTHESES, REFERENCES).to_dict()),
        (["--target-lang", "th"], bleu.score(HYPOTHESES, REFERENCES, tokenizer="char").to_dict()),
        (["--metric", "rouge"], rouge.score(HYPOTHESES, REFERENCES, None).to_dict()),
        (["--metric", "rouge", "--sentence-marker", "on"], rouge.score(HYPOTHESES, REFERENCES, "on").to_dict()),
    ],
)
def test_scores_of_the_hypotheses_in_order(
    run: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str], expected: dict[str, object]
) -> None:
    assert call(monkeypatch, run, "--reference", run.parent / "ref", *flags) == 0
    assert (run / "test.hyp").read_text(encoding="utf-8").splitlines() == HYPOTHESES
    written = json.loads((run / "scores.json").read_text(encoding="utf-8"))["test"]
    assert {name: written[name] for name in expected} == expected
    assert written.keys() - expected.keys() == {"hypotheses", "reference", "reference_sha256"}


def test_a_named_test_set_keeps_scores_text_and_sources_of_its_own(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reference, source = run.parent / "ref", run.parent / "source"
    source.write_text("x\nx\n", encoding="utf-8")
    (run / "generate.log").rename(run / "generate.2018.log")
    words = ["--source", source, "--data-set", "newstest2018", "--step", "generate.2018"]
    assert call(monkeypatch, run, "--reference", reference, *words) == 0
    (run / "generate.2018.log").rename(run / "generate.log")
    assert call(monkeypatch, run, "--reference", reference) == 0
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))
    assert list(scores) == ["newstest2018", "test"]
    assert scores["newstest2018"]["hypotheses"] == "newstest2018.hyp"
    assert (run / "newstest2018.hyp").read_text(encoding="utf-8").splitlines() == HYPOTHESES
    assert scores["newstest2018"]["source"] == str(source)
    assert scores["newstest2018"]["source_sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    assert scores["test"]["reference_sha256"] == hashlib.sha256(reference.read_bytes()).hexdigest()


def test_bleu_and_chrf_are_printed_for_each_run(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, run, "--reference", run.parent / "ref") == 0
    score = bleu.score(HYPOTHESES, REFERENCES)
    printed = capsys.readouterr().out
    assert f"BLEU {score.bleu:.2f}" in printed
    assert f"chrF {score.chrf:.2f}" in printed


def test_rouge_of_greek_counts_its_words(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run / "generate.log").write_text(GENERATED.replace("a dog ran", "ένα σκυλί"), encoding="utf-8")
    (run.parent / "ref").write_text("ένα σκυλί τρέχει\nκαι η γάτα\n", encoding="utf-8")
    assert call(monkeypatch, run, "--reference", run.parent / "ref", "--metric", "rouge") == 0
    scores = json.loads((run / "scores.json").read_text(encoding="utf-8"))["test"]
    assert scores["rouge1"]["f1"]["mean"] == pytest.approx(0.8 / 2)  # precision 1, recall 2/3; the other has no word


def test_f1_is_printed_for_each_run(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, run, "--reference", run.parent / "ref", "--metric", "rouge") == 0
    means = rouge.score(HYPOTHESES, REFERENCES, None).means
    shown = "/".join(f"{100 * means[metric].f1:.2f}" for metric in ("rouge1", "rouge2", "rougeL"))
    assert f"  run: ROUGE-1/2/L {shown}  ROUGE|" in capsys.readouterr().out


def test_other_number_of_references_names_both_and_writes_nothing(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (run.parent / "ref").write_text("one\n", encoding="utf-8")
    assert call(monkeypatch, run, "--reference", run.parent / "ref", "--metric", "rouge") == 2
    assert "has hypotheses for 2 sentences" in capsys.readouterr().err
    assert not (run / "scores.json").exists()


def test_a_sentence_that_was_left_out_is_not_made_up_for_by_a_later_one(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    closing = "x | INFO | Translated 2 sentences (9 tokens) in 1.0s (2.00 sentences/s, 9.00 tokens/s)\n"
    (run / "generate.log").write_text(GENERATED.replace("-1\t", "-2\t") + closing, encoding="utf-8")
    assert call(monkeypatch, run, "--reference", run.parent / "ref") == 2
    assert "hypotheses" in capsys.readouterr().err
    assert not (run / "scores.json").exists()


def test_sentence_marker_without_rouge_is_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SystemExit):
        call(monkeypatch, run, "--reference", run.parent / "ref", "--sentence-marker", "<q>")
