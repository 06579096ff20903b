"""recipes/lm_quality_table.py: what a better language model is worth."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import lm_quality_table
import pytest

REFERENCES = [f"das Paket Nummer {number} enthält die Dokumentation von Programm {number}" for number in range(40)]
WORSE = [line if number % 2 else "das Paket ist da" for number, line in enumerate(REFERENCES)]


def run(folder: Path, result: dict[str, float], hypotheses: list[str] | None = None, bleu: float = 0.0) -> None:
    folder.mkdir(parents=True)
    step = {"state": "finished", "command": [], "seconds": 1.0, "result": result}
    (folder / "run.json").write_text(json.dumps({"steps": {"train": step}}))
    if hypotheses:
        (folder / "test.hyp").write_text("".join(f"{line}\n" for line in hypotheses), encoding="utf-8")
        score = {"bleu": bleu, "chrf": 30.0, "signature": "BLEU|tok:13a", "hypotheses": "test.hyp"}
        (folder / "scores.json").write_text(json.dumps({"test": score}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A baseline of 40 BLEU, an LM of perplexity 16 that changes nothing and one of 8 that adds 60 BLEU."""
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    corpus.mkdir()
    (corpus / "test.de").write_text("".join(f"{line}\n" for line in REFERENCES), encoding="utf-8")
    monkeypatch.setenv("CORPUS", str(corpus))
    run(out / "baseline", {"best_valid_perplexity": 31.0}, WORSE, 40.0)
    for updates, loss, hypotheses, bleu in ((500, 4.0, WORSE, 40.0), (2000, 3.0, REFERENCES, 100.0)):
        run(out / f"cloze-{updates}" / "cloze.en", {"best_valid_loss": loss})
        run(out / f"with-{updates}" / "src_elmo_shdemb", {"best_valid_perplexity": loss + 20}, hypotheses, bleu)
    return out


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["lm_quality_table.py", *words, "--pairs", "2500"])
    return lm_quality_table.main()


def test_each_language_model_has_its_perplexity_and_its_gain(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, str(folder), "--updates", "500", "2000") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "| none: baseline | | 40.00 | 30.00 | 31.0 | | |"
    assert lines[3] == "| 500 | 16.00 | 40.00 | 30.00 | 24.0 | +0.00 | 1.0000 |"
    assert lines[4].startswith("| 2,000 | 8.00 | 100.00 | 30.00 | 23.0 | +60.00 | 0.00")
    assert lines[-1] == "BLEU|tok:13a"
    drawn = (folder / "lm-quality.svg").read_text(encoding="utf-8")
    assert "2,000 updates" in drawn
    assert "](lm-quality.svg)" in (folder / "report.md").read_text(encoding="utf-8")


def test_a_page_gets_the_table_and_the_figure(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    page = tmp_path / "RESULTS.md"
    page.write_text(f"# All\n<!-- study lm_quality 2500: {lm_quality_table.HEADING} -->\nold\n<!-- end -->\nmore\n")
    monkeypatch.chdir(tmp_path)
    assert command(monkeypatch, str(folder), "--updates", "500", "2000", "--into", str(page)) == 0
    text = page.read_text(encoding="utf-8")
    assert "old" not in text
    assert "| 2,000 | 8.00 | 100.00 |" in text
    picture = tmp_path / "recipes" / "debian_ende" / "results" / "lm_quality" / "lm-quality.svg"
    assert picture.read_text(encoding="utf-8") == (folder / "lm-quality.svg").read_text(encoding="utf-8")


def test_a_model_that_has_not_been_scored_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "with-500" / "src_elmo_shdemb" / "scores.json").unlink()
    assert command(monkeypatch, str(folder), "--updates", "500", "2000") == 2
    said = capsys.readouterr().err
    assert "with-500/src_elmo_shdemb: no score of the test set" in said
