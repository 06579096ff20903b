"""hypotheses.py, compare.py and side_by_side.py on a run folder made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from lmfusion.errors import UserError
from lmfusion.inspection import Mix
from lmfusion.report import compare, side_by_side
from lmfusion.runs.hypotheses import score_run
from lmfusion.runs.run_folder import RunFolder

REFERENCES = [f"Satz {number} ist ein kurzer deutscher Satz ." for number in range(12)]
FINISHED = "x | INFO | Translated 12 sentences (99 tokens) in 1.0s (12.0 sentences/s, 99.00 tokens/s)\n"


def make_run(folder: Path, hypotheses: list[str]) -> RunFolder:
    """A run folder with a generation in it, its sentences out of order as fairseq prints them."""
    run = RunFolder(folder)
    run.path.mkdir()
    lines = [
        f"S-{n}\tsource\nT-{n}\ttarget\nH-{n}\t-0.5\t{text}\nD-{n}\t-0.5\t{text}\nP-{n}\t-0.5\n"
        for n, text in enumerate(hypotheses)
    ]
    run.log("generate").write_text("".join(lines[::-1]) + FINISHED, encoding="utf-8")
    return run


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    source, reference = tmp_path / "test.en", tmp_path / "test.de"
    source.write_text("".join(f"Source {n}\n" for n in range(12)), encoding="utf-8")
    reference.write_text("".join(line + "\n" for line in REFERENCES), encoding="utf-8")
    return source, reference


def test_hypotheses_are_put_in_order_scored_and_kept(tmp_path: Path, files: tuple[Path, Path]) -> None:
    run = make_run(tmp_path / "run", REFERENCES)
    assert score_run(run, files[1]).bleu == pytest.approx(100)
    assert (run.path / "test.hyp").read_text(encoding="utf-8").splitlines() == REFERENCES
    score = run.scores["test"]
    assert score["bleu"] == pytest.approx(100)
    assert "tok:13a" in score["signature"]
    assert score["hypotheses"] == "test.hyp"


def test_a_generation_of_other_sentences_is_refused(tmp_path: Path, files: tuple[Path, Path]) -> None:
    run = make_run(tmp_path / "run", REFERENCES[:-1])
    with pytest.raises(UserError, match=r"11 sentences, but .*test\.de has 12 lines"):
        score_run(run, files[1])
    assert not (run.path / "test.hyp").exists()


def test_the_report_shows_scores_examples_and_times(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    worse = [line.replace("kurzer", "langer") for line in REFERENCES]
    for name, hypotheses in (("one", worse), ("two", REFERENCES)):
        run = make_run(tmp_path / name, hypotheses)
        score_run(run, files[1])
        run.begin("train", ["fairseq-train"])
        run.add_seconds("train", 65)
        run.finish("train", {"updates": 1200, "tokens_per_second": 4321.0, "best_valid_perplexity": 12.345})
    mix = Mix("source", 1.5, {"embedding": 0.25, "layer 1": 0.75})
    monkeypatch.setattr(compare, "mixes_of", lambda run: [mix] if run.path.name == "two" else [])
    words = [f"baseline={tmp_path / 'one'}", f"SRC-ELMO={tmp_path / 'two'}", "--examples", "3"]
    words += ["--source", str(files[0]), "--reference", str(files[1]), "--stage", "preparing=30"]
    monkeypatch.setattr(sys, "argv", ["compare", *words, "--save", str(tmp_path / "report.txt")])
    assert compare.main() == 0
    report = (tmp_path / "report.txt").read_text(encoding="utf-8")
    for expected in (
        "Source 2",
        "Satz 6 ist ein langer",
        "BLEU|nrefs:1|case:mixed",
        "above baseline: more than chance (p = 0.00",
        "Learned mix of the source LM's layers (gamma 1.500)",
        "1,200 updates, validation perplexity 12.35",
        "4,321",
        "2:40",
    ):
        assert expected in report
    assert report == capsys.readouterr().out


def test_a_run_without_scores_is_named(
    tmp_path: Path, files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["a=one", "b=two", "--source", str(files[0]), "--reference", str(files[1])]
    monkeypatch.setattr(sys, "argv", ["compare", *words])
    assert compare.main() == 2
    assert "error: one: a has no scores yet" in capsys.readouterr().err


def test_examples_lie_at_equal_distances() -> None:
    sources = [str(n) for n in range(100)]
    examples = side_by_side.pick_examples(sources, sources, {"a": sources}, 10)
    assert [example.number for example in examples] == list(range(6, 106, 10))
    assert len(side_by_side.pick_examples(sources[:3], sources[:3], {"a": sources[:3]}, 10)) == 3


def test_markup_in_text_is_shown_as_it_is() -> None:
    console = Console(record=True, width=80)
    example = side_by_side.Example(1, "[bold]not markup[/bold]", "[/]", {"a": "[x]"})
    side_by_side.print_examples(console, [example])
    text = console.export_text()
    assert all(word in text for word in ("[bold]not markup[/bold]", "[/]", "[x]"))


@pytest.mark.parametrize(("fraction", "bar"), [(0.0, ""), (1.0, "████"), (0.5, "██"), (0.28125, "█▏")])
def test_a_bar_has_eighths(fraction: float, bar: str) -> None:
    assert side_by_side.bar(fraction, 4) == bar
