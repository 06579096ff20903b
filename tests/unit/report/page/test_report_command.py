"""``lmfusion report`` from run folders to files, and what it says of bad input."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from lmfusion.cli import main


def report(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    """Status, output and errors of the command."""
    status = main(["report", *map(str, words)])
    shown = capsys.readouterr()
    return status, shown.out, shown.err


class Links(HTMLParser):
    """Collects whatever a page could fetch, its tags and its text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.fetched: list[str] = []
        self.tags: list[str] = []
        self.text: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.fetched += [value or "" for name, value in attrs if name in ("src", "href", "xlink:href", "srcset")]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_a_page_its_tables_and_its_figures_are_written(study: Path, tmp_path: Path, capsys) -> None:
    out = tmp_path / "out" / "deeper"
    status, shown, errors = report(capsys, study, "--out", out, "--title", "A study")
    assert (status, errors) == (0, "")
    assert f"wrote {out / 'report.html'}" in shown
    # 5000 pairs: baseline 11 and 12, SRC-ELMO 12 and 14
    assert "| SRC-ELMO | 8.00 | 13.00 |" in shown
    names = {path.name for path in out.iterdir()}
    tables = ("bleu", "chrf", "speed", "mix-source", "runs", "language-models", "signatures", "environments", "data")
    figures = ("difference", "curve-loss", "curve-perplexity", "mix-source-1", "lm-curve-loss")
    expected = {*(f"{name}.csv" for name in tables), *(f"{name}.{kind}" for name in figures for kind in ("svg", "png"))}
    assert expected | {"report.html", "report.md"} <= names
    assert not [name for name in names if name.endswith(".partial")]


@pytest.mark.slow
def test_the_terminal_hears_nothing_but_the_report(study: Path, tmp_path: Path) -> None:
    """fairseq sets the root logger to tell everything, and matplotlib has much to tell."""
    command = [sys.executable, "-m", "lmfusion.cli", "report", study, "--out", tmp_path]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    first, _, third, *_ = done.stdout.splitlines()
    assert "BLEU above the baseline" in first
    assert third == "### BLEU on test (en-de) by number of training pairs"


@pytest.mark.slow
def test_the_page_needs_nothing_but_itself(study: Path, tmp_path: Path, capsys) -> None:
    report(capsys, study, "--out", tmp_path / "out")
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    links = Links(page)
    assert all(link.startswith(("#", "data:")) for link in links.fetched), links.fetched
    assert "script" not in links.tags
    assert "@import" not in page
    assert not re.search(r"url\((?!#)", page)
    assert "default-src 'none'" in page
    assert links.tags.count("svg") == page.count("<figure") == 6
    for anchor in re.findall(r'href="#(section-\d+)"', page):
        assert f'id="{anchor}"' in page


def test_page_markdown_and_csv_tell_the_same(study: Path, tmp_path: Path, capsys) -> None:
    report(capsys, study, "--out", tmp_path)
    page = " ".join(" ".join(Links((tmp_path / "report.html").read_text(encoding="utf-8")).text).split())
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    with (tmp_path / "bleu.csv").open(encoding="utf-8") as stream:
        rows = list(csv.DictReader(stream))
    assert [(row["row"], row["pairs"], row["mean"], row["standard deviation"]) for row in rows] == [
        *[("baseline", "2500", "6.5", "0.7071"), ("baseline", "5000", "11.5", "0.7071")],
        *[("SRC-ELMO", "2500", "8.0", "1.4142"), ("SRC-ELMO", "5000", "13.0", "1.4142")],
    ]
    assert "| baseline | 6.50 | 11.50 |" in markdown
    assert "baseline 6.50 11.50" in page
    for text in (page, markdown):
        for said in ("ein kleines Haus", "BLEU|nrefs:1|case:mixed", "sacrebleu 2.6.0", "fairseq-train data/bitext"):
            assert said in text
        for title in ("All runs", "Speed", "Mixing weights", "Learning curves", "Language models", "To repeat it"):
            assert title in text
    assert "![BLEU difference to the baseline, test (en-de)](difference.svg)" in markdown


def test_text_of_runs_cannot_become_part_of_the_page(study: Path, tmp_path: Path, capsys) -> None:
    evil = "<script>alert(1)</script>"
    (study / "base-2500-1" / "test.hyp").write_text(f"{evil}\nb\nc\n")
    path = study / "base-2500-1" / "run.json"
    record = json.loads(path.read_text())
    record["git_commit"] = evil
    path.write_text(json.dumps(record))
    report(capsys, study, "--out", tmp_path, "--title", evil)
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "<script" not in page
    assert page.count("&lt;script&gt;") >= 3


def test_bad_input_is_said_in_the_page_and_on_the_terminal_and_the_rest_is_reported(
    study: Path, tmp_path: Path, capsys
) -> None:
    (study / "elmo-5000-1" / "run.json").write_text('{"name": "elmo')
    log = study / "base-5000-2" / "train.log"
    log.write_text(log.read_text().replace('"valid_loss": "6.0"', '"valid_loss": "nan"'))
    status, shown, errors = report(capsys, study, tmp_path / "nowhere", "--out", tmp_path / "out")
    page = " ".join(Links((tmp_path / "out" / "report.html").read_text(encoding="utf-8")).text)
    markdown = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert status == 2
    for said in (
        "nowhere: there is no such folder",
        "elmo-5000-1/run.json: is not JSON",
        "baseline: base-5000-2 left out of every mean: NaN or infinite validation loss at update 20.",
    ):
        for text in (page, markdown, errors):
            assert said in text
    assert "lmfusion: error: 2 things could not be read (see above)" in errors
    # of 11 and 12 only the first is left, and of 12 and 14 the second
    assert "| baseline | 6.50 | 11.00 (1 of 2 runs, left out: NaN loss) |" in shown
    assert "| SRC-ELMO | 8.00 | 14.00 (1 seed) |" in shown
    assert "11.50" not in shown


@pytest.mark.slow
def test_failed_and_unfinished_runs_are_no_error(study: Path, tmp_path: Path, capsys) -> None:
    path = study / "elmo-5000-1" / "run.json"
    record = json.loads(path.read_text())
    record["steps"]["generate"]["state"] = "failed"
    path.write_text(json.dumps(record))
    status, _, errors = report(capsys, study, "--out", tmp_path)
    assert status == 0
    assert "lmfusion: warning: SRC-ELMO: elmo-5000-1 left out of every mean: generation failed." in errors


@pytest.mark.slow
def test_different_test_sets_are_never_one_table(study: Path, tmp_path: Path, capsys) -> None:
    path = study / "elmo-5000-1" / "scores.json"
    scores = json.loads(path.read_text())
    scores["test"]["reference_sha256"] = "0" * 64
    path.write_text(json.dumps(scores))
    status, shown, errors = report(capsys, study, "--out", tmp_path)
    assert status == 0
    assert "different test sets are called 'test (en-de)'" in errors
    assert "reference 000000000000" in errors
    assert shown.count("### BLEU on test (en-de)") == 1
    assert "### test (en-de), 5K training pairs" in shown
    assert (tmp_path / "test-en-de.2-scores.csv").exists()


@pytest.mark.slow
def test_runs_without_any_score_are_reported_as_such(study: Path, tmp_path: Path, capsys) -> None:
    for path in study.glob("*/scores.json"):
        path.unlink()
    status, shown, errors = report(capsys, study, "--out", tmp_path)
    assert status == 0
    assert "None of the runs has a score yet" in errors
    assert (tmp_path / "curve-loss.svg").exists()
    assert "not scored" in (tmp_path / "runs.csv").read_text()
    assert "### " not in shown


@pytest.mark.slow
def test_learning_curves_examples_and_size_may_be_chosen(study: Path, tmp_path: Path, capsys) -> None:
    words = ["--curves", "elmo-5000-2", "--examples", "1", "--size", "5000", "--significance"]
    status, _, _ = report(capsys, study, "--out", tmp_path, *words)
    assert status == 0
    markdown = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "1 of 3 sentences" in markdown
    assert "### Examples from test (en-de), 5K pairs" in markdown
    assert "### Significance" in markdown
    curve = (tmp_path / "curve-loss.svg").read_text(encoding="utf-8")
    assert "elmo-5000-2" in curve
    assert "base-" not in curve


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--curves", "nothing"], "--curves nothing: there is no such run. There are: base-2500-1,"),
        (["--size", "7"], "--size 7: no run has this bitext size. There are: 2500, 5000."),
        (["--reference", "nowhere"], "--reference nowhere: there is no such file"),
        (["--source", "alone"], "--source goes with --reference"),
        (["--examples", "-3"], "--examples -3"),
    ],
)
def test_options_that_name_nothing_are_refused(
    study: Path, tmp_path: Path, capsys, words: list[str], said: str
) -> None:
    status, _, errors = report(capsys, study, "--out", tmp_path / "out", *words)
    assert status == 2
    assert said in errors
    assert not (tmp_path / "out").exists()


def test_a_reference_that_nothing_was_scored_against_is_refused(study: Path, tmp_path: Path, capsys) -> None:
    other = tmp_path / "other"
    other.write_text("not the reference\n")
    status, _, errors = report(capsys, study, "--out", tmp_path / "out", "--reference", other)
    assert status == 2
    assert "none of the runs was scored against this text" in errors


def test_without_any_run_folder_nothing_is_written(tmp_path: Path, capsys) -> None:
    status, _, errors = report(capsys, tmp_path / "nowhere", "--out", tmp_path / "out")
    assert status == 2
    assert f"lmfusion: error: {tmp_path / 'nowhere'}: there is no such folder" in errors
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_an_output_folder_that_cannot_be_is_named(study: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "file").write_text("kept")
    status, _, errors = report(capsys, study, "--out", tmp_path / "file")
    assert status == 2
    assert "Name another folder with --out." in errors
    assert (tmp_path / "file").read_text() == "kept"


@pytest.mark.slow
def test_other_files_in_the_output_folder_are_left_alone(study: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "mine.txt").write_text("kept")
    for _ in range(2):
        assert report(capsys, study, "--out", tmp_path)[0] == 0
    assert (tmp_path / "mine.txt").read_text() == "kept"
