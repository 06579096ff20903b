"""What ``lmfusion train`` does around the scripts: one command a folder, and a report of all that is in it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from lmfusion.errors import InputError
from lmfusion.rows import scripts, train
from lmfusion.rows.asked import Asked
from lmfusion.runs import provenance
from lmfusion.runs.run_folder import RunFolder
from lmfusion.text.prepared import Prepared


@pytest.fixture
def asked(data: Prepared, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asked:
    """A command whose scripts are done at once."""
    for name in ("bitext-all", "lm.en", "lm.fr"):
        (data.folder / name).mkdir()
    monkeypatch.setattr(train, "_run", lambda asked, names, *rest, **more: [])
    return Asked(data, ["baseline"], tmp_path / "runs")


def test_a_second_command_in_the_folder_is_refused_while_the_first_is_at_work(asked: Asked) -> None:
    first = RunFolder(asked.out)
    first.lock()
    with pytest.raises(InputError, match="still at work"):
        train.train(asked)
    assert not list(asked.out.glob("*.json"))
    del first
    assert train.train(asked) == []


@pytest.mark.parametrize("lms", [["lm.en"], []])
def test_the_report_has_the_rows_of_earlier_commands_and_those_language_models_that_are_there(
    lms: list[str], asked: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[str] = []

    def run(words: list[str], check: bool) -> SimpleNamespace:
        reported.extend(Path(word).name for word in words[words.index("report") + 1 : words.index("--out")])
        return SimpleNamespace(returncode=0)

    for row in ("baseline", "src_elmo", *lms):
        (asked.out / row).mkdir(parents=True)
        (asked.out / row / "scores.json").write_text("{}", encoding="utf-8")
    (asked.out / "shared").mkdir()  # not scored yet
    monkeypatch.setattr("lmfusion.rows.train.subprocess.run", run)
    train.train(asked)
    assert reported == ["baseline", "src_elmo", *lms]


def finished(folder: Path, reference: Path, bleu: float) -> None:
    """A run folder, as a row's script leaves it."""
    folder.mkdir(parents=True)
    command = f"fairseq-train data/bitext-all -s en -t fr --task translation --arch lmfusion_tiny --save-dir {folder}"
    step = {"state": "finished", "seconds": 6.0, "command": command.split(), "data_sha256": {}}
    result = {"updates": 10, "best_valid_loss": 4.0, "tokens_per_second": 100}
    record = {"name": folder.name, "seed": 1, "state": "finished", "steps": {"train": {**step, "result": result}}}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    line = {"valid_loss": "4", "valid_ppl": "16", "valid_num_updates": "10"}
    (folder / "train.log").write_text(f"2030-01-31 12:00:00 | INFO | valid | {json.dumps(line)}\n", encoding="utf-8")
    (folder / "test.hyp").write_text("une maison\n", encoding="utf-8")
    score = {"bleu": bleu, "chrf": 2 * bleu, "signature": "BLEU|tok:13a", "sentences": 1, "hypotheses": "test.hyp"}
    scores = {"test": {**score, "reference_sha256": provenance.hash_file(reference)}}
    (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")


@pytest.mark.parametrize(("file", "content"), [("run.json", "{"), ("test.hyp", None)])
def test_a_damaged_row_of_an_earlier_command_is_named_and_the_others_are_reported(
    asked: Asked, capfd: pytest.CaptureFixture[str], file: str, content: str | None
) -> None:
    for side, text in (("en", "a house\n"), ("fr", "une maison\n")):
        path = asked.data.text("test", side)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    for row, bleu in (("baseline", 12.25), ("shared", 13.75)):
        finished(asked.out / row, asked.data.text("test", "fr"), bleu)
    damaged = asked.out / "shared" / file
    if content is None:
        damaged.unlink()
    else:
        damaged.write_text(content, encoding="utf-8")
    assert train.train(asked) == []
    said = [line for line in capfd.readouterr().err.splitlines() if str(damaged.parent) in line]
    assert len(said) == 1
    assert "12.2" in (asked.out / "report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("file", "content", "failed"),
    [
        ("run.json", "{", True),
        ("run.json", '{"name": "src_elmo", "steps": {}}', True),
        ("scores.json", "{", True),
        ("train.log", None, False),
        ("test.hyp", None, False),
    ],
    ids=["cut", "half-written", "scores", "no log", "no translations"],
)
def test_a_row_of_this_command_that_the_report_cannot_have_has_failed(
    asked: Asked, monkeypatch: pytest.MonkeyPatch, file: str, content: str | None, failed: bool
) -> None:
    """The report says so, and has the other rows; one without curves or examples is in its tables."""
    reference = asked.data.text("test", "fr")
    reference.parent.mkdir(parents=True, exist_ok=True)
    reference.write_text("une maison\n", encoding="utf-8")
    for row in ("baseline", "src_elmo", "shared"):
        finished(asked.out / row, reference, 12.25)
    for row in ("src_elmo", "shared"):  # the latter of an earlier command
        if content is None:
            (asked.out / row / file).unlink()
        else:
            (asked.out / row / file).write_text(content, encoding="utf-8")

    def report(words: list[str], check: bool) -> SimpleNamespace:
        page = Path(words[words.index("--out") + 1]) / "report.html"
        page.parent.mkdir()
        page.write_text("", encoding="utf-8")
        return SimpleNamespace(returncode=2)

    monkeypatch.setattr("lmfusion.rows.train.subprocess.run", report)
    assert train.train(replace(asked, rows=["baseline", "src_elmo"])) == ["src_elmo"] * failed


def test_a_report_that_is_not_written_is_an_error(asked: Asked) -> None:
    """Its folder is a file."""
    (asked.out / "baseline").mkdir(parents=True)
    (asked.out / "baseline" / "scores.json").write_text("{}", encoding="utf-8")
    (asked.out / "report").write_text("", encoding="utf-8")
    with pytest.raises(InputError, match="report"):
        train.train(asked)


@pytest.mark.parametrize(("given", "meant"), [("lstn", "lstm"), ("LSTM", "lstm"), ("src-elmo", "src_elmo")])
def test_a_row_that_is_misspelled_is_told_with_the_nearest(given: str, meant: str) -> None:
    with pytest.raises(InputError, match=rf"--rows {given}: .* mean {meant}\?"):
        scripts.check_rows([given])
