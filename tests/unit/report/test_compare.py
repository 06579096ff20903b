"""compare.py on run folders made by hand."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from rich.console import Console

from lmfusion.report import compare
from lmfusion.report.page.examples import equally_spaced
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
    mix = {"side": "source", "gamma": 1.5, "shares": {"embedding": 0.25, "layer 1": 0.75}}
    run.set_model({"mixes": [mix]})
    words = [f"baseline={tmp_path / 'one'}", f"SRC-ELMO={tmp_path / 'two'}", "--examples", "3"]
    words += ["--source", str(files[0]), "--reference", str(files[1]), "--stage", "preparing=30"]
    monkeypatch.setattr(sys, "argv", ["compare", *words, "--save", str(tmp_path / "report.txt")])
    assert compare.main() == 0
    report = (tmp_path / "report.txt").read_text(encoding="utf-8")
    for expected in (
        "Source 2",
        "Satz 6 ist ein langer",
        "BLEU|nrefs:1|case:mixed",
        "above the baseline, more than chance (p = 0.00",
        "Learned mix of the source LM's layers (gamma 1.500)",
        f"embedding  0.250  {'█' * 13}▎ ",
        f"layer 1    0.750  {'█' * 40}",
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
    assert equally_spaced(100, 10) == list(range(5, 100, 10))
    assert equally_spaced(3, 10) == [0, 1, 2]
    assert equally_spaced(19, 10) == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18], "up to the end"
    assert equally_spaced(0, 10) == []


def test_markup_in_text_is_shown_as_it_is() -> None:
    console = Console(record=True, width=80)
    compare.print_examples(console, ["[bold]not markup[/bold]"], [("reference", ["[/]"]), ("[a]", ["[x]"])], 1)
    text = console.export_text()
    assert all(word in text for word in ("[bold]not markup[/bold]", "[/]", "[a]", "[x]"))


@pytest.mark.parametrize(("damaged", "holds"), [(1, False), (12, True)])
def test_the_best_is_told_of_and_bold_only_if_it_is_more_than_chance(
    tmp_path: Path, files: tuple[Path, Path], damaged: int, holds: bool
) -> None:
    worse = [line.replace("kurzer", "langer") if n < damaged else line for n, line in enumerate(REFERENCES)]
    worst = [line.replace("kurzer deutscher", "a b") for line in REFERENCES]
    systems = {"baseline": worse, "best": REFERENCES, "worst": worst}
    runs = {name: make_run(tmp_path / name, lines) for name, lines in systems.items()}
    for run in runs.values():
        score_run(run, files[1])
    compared = compare.compare_systems(systems, REFERENCES)
    said = compare.verdict(compared, len(REFERENCES))
    assert (said.name, said.holds) == ("best", holds)
    console = Console(record=True, width=120, force_terminal=True)
    compare.print_scores(console, runs, compared, len(REFERENCES))
    assert ("\x1b[1m100.00\x1b[0m" in console.export_text(styles=True)) == holds
