"""recipes/rates_table.py: rows at several learning rates, of which the one with the lowest loss is scored."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import rates_table

SOURCES = [f"program {number} reads images. It runs everywhere." for number in range(40)]
REFERENCES = [f"program {number} for images" for number in range(40)]
LEAD = [f"program {number} reads images." for number in range(40)]
LEARNED = [f"tools for {'images' if number % 2 else 'sound'}" for number in range(40)]


def run(folder: Path, loss: float | None = None, synopses: list[str] | None = None, state: str = "finished") -> None:
    folder.mkdir(parents=True)
    step = {"state": state, "command": ["fairseq-train", f"{folder.parents[1]}/data"], "seconds": 1.0}
    steps = {} if loss is None else {"train": {**step, "result": {"best_valid_loss": loss}}}
    (folder / "run.json").write_text(json.dumps({"steps": steps}))
    if synopses:
        (folder / "test.hyp").write_text("".join(f"{line}\n" for line in synopses), encoding="utf-8")
        (folder / "scores.json").write_text(json.dumps({"test": {"hypotheses": "test.hyp"}}))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Lead, and a baseline whose loss is lower at 0.001; a denoiser beside them is no row."""
    corpus, out = tmp_path / "corpus", tmp_path / "out"
    corpus.mkdir()
    for side, lines in (("description", SOURCES), ("synopsis", REFERENCES)):
        (corpus / f"synopsis.test.{side}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    monkeypatch.setenv("CORPUS", str(corpus))
    monkeypatch.setattr(rates_table, "RESULTS", tmp_path / "results" / "whole")
    run(out / "rate-0.001/lead", synopses=LEAD)
    run(out / "rate-0.001/denoiser", 3.0)
    run(out / "rate-0.001/baseline", 7.25, LEARNED)
    run(out / "rate-0.01/baseline", 7.5)
    return out


def command(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["rates_table.py", *words])
    return rates_table.main()


def test_each_row_has_its_scores_its_losses_and_what_it_copies(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, str(folder)) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("|")]
    assert len(lines) == 4, "lead and the baseline"
    # of lead's four words three are among the reference's four; of its three pairs of words one is
    assert lines[2].startswith("| lead | 75.00 | 33.33 | 75.00 |  | +32.14 (")
    assert lines[2].endswith("| 100% |  |  |")
    # of the baseline's three words "for" and, of every second, "images": 2 * 2/7 and 2 * 1/7, in the mean 42.86
    assert lines[3].startswith("| baseline | 42.86 |")
    assert "| -32.14 (" in lines[3]
    assert lines[3].endswith("| 17% | **7.250** | 7.500 |"), "of 120 words 20 stand in the description"


def test_a_word_is_copied_as_often_as_it_stands_in_a_text_whose_own_source_has_it(tmp_path: Path) -> None:
    sources = ["a car", "b tree"]
    run(tmp_path / "rate-0.001/lead", synopses=sources)
    run(tmp_path / "rate-0.001/baseline", synopses=["a a b", "b tre"])
    table = rates_table.table(rates_table.read(tmp_path), sources, ["a car", "b"])
    (line,) = [line for line in table.splitlines() if line.startswith("| baseline |")]
    # twice a, and b; not the b of the other text, nor a part of a word
    assert line.endswith("| 60% |")


def test_what_is_committed_has_no_folder_of_the_machine_and_is_told_with_what_comes_after(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "page.md"
    page.write_text("<!-- study debian_synopsis whole: Whole descriptions -->\n<!-- end -->\n", encoding="utf-8")
    assert command(monkeypatch, str(folder), "--add-results") == 0
    other = tmp_path / "other"
    run(other / "rate-0.001/lead", synopses=LEAD)
    run(other / "rate-0.01/tgt_elmo", 6.5, REFERENCES)
    assert command(monkeypatch, str(other), "--add-results", "--into", str(page)) == 0
    kept = tmp_path / "results" / "whole"
    assert sorted(str(path.relative_to(kept)) for path in kept.glob("*/*")) == [
        *("rate-0.001/baseline", "rate-0.001/lead", "rate-0.01/baseline", "rate-0.01/tgt_elmo"),
    ]
    texts = [path.read_text(encoding="utf-8") for path in kept.rglob("*") if path.is_file()]
    assert len(texts) == 10
    assert not any(str(tmp_path) in text for text in texts)
    rows = [line.split(" | ")[0] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("| ")]
    assert rows[1:] == ["| tgt_elmo", "| lead", "| baseline"]


def test_a_training_that_goes_on_and_a_folder_without_rows_are_refused(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command(monkeypatch, str(tmp_path / "nowhere")) == 2
    assert "nowhere: holds no scored row" in capsys.readouterr().err
    run(folder / "rate-0.003/baseline", 7.0, state="started")
    assert command(monkeypatch, str(folder)) == 2
    assert "rate-0.003/baseline: its training has not finished" in capsys.readouterr().err
