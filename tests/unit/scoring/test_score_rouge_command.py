"""lmfusion score rouge: what it prints, and that unfit input is one line and status 2."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from lmfusion import cli
from lmfusion.scoring import rouge
from lmfusion.scoring.rouge_significance import paired_bootstrap

HYPOTHESES = ["d <q> b", "the cat sat"]
REFERENCES = ["b <q> d", "the cat"]
GENERATED = """S-1\t▁x
T-1\t▁the ▁cat
H-1\t-0.1\t▁the ▁cat ▁s at
D-1\t-0.1\tthe cat sat
S-0\t▁x
T-0\t▁b ▁< q > ▁d
H-0\t-0.1\t▁d ▁< q > ▁b
D-0\t-0.1\td <q> b
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder has hyp, ref and generate.log of the same two summaries."""
    for name, lines in {"hyp": HYPOTHESES, "ref": REFERENCES, "short": REFERENCES[:1]}.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (tmp_path / "generate.log").write_text(GENERATED, encoding="utf-8")
    (tmp_path / "noun.exc").write_text("sat cat\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def scored(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert cli.main(["score", "rouge", *arguments, "--json"]) == 0
    values: dict[str, Any] = json.loads(capsys.readouterr().out)
    return values


def test_json_is_the_score_of_the_lines(capsys: pytest.CaptureFixture[str]) -> None:
    printed = scored(capsys, "--hyp", "hyp", "--ref", "ref", "--sentence-marker", "<q>")
    assert printed == {**rouge.score(HYPOTHESES, REFERENCES, "<q>").to_dict(), "paired": []}
    assert printed["rougeL"]["f1"]["mean"] == 0.9
    assert printed["hypothesis_sentences"] == 3


def test_a_line_is_one_sentence_without_a_marker(capsys: pytest.CaptureFixture[str]) -> None:
    printed = scored(capsys, "--hyp", "hyp", "--ref", "ref")
    assert printed["hypothesis_sentences"] == 2
    assert "|split:none|" in printed["signature"]
    assert printed["rougeL"]["f1"]["mean"] < 0.7


def test_generated_output_scores_as_its_text(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--sentence-marker", "<q>"]
    text = scored(capsys, "--hyp", "hyp", "--ref", "ref", *flags)
    assert scored(capsys, "--generate", "generate.log", "--ref", "ref", *flags) == text
    assert scored(capsys, "--generate", "generate.log", *flags) == text, "its own targets"


def test_exceptions_are_read_and_named(capsys: pytest.CaptureFixture[str]) -> None:
    printed = scored(capsys, "--hyp", "hyp", "--ref", "ref", "--exceptions", "noun.exc")
    assert "|exceptions:1-" in printed["signature"]


@pytest.mark.parametrize("like", rouge.LIKE)
def test_figures_are_like_those_asked_for(capsys: pytest.CaptureFixture[str], like: str) -> None:
    printed = scored(capsys, "--hyp", "hyp", "--ref", "ref", "--sentence-marker", "<q>", "--like", like)
    assert printed == {**rouge.score(HYPOTHESES, REFERENCES, "<q>", like=like).to_dict(), "paired": []}


def test_table_shows_each_measure_with_its_interval_and_the_signature(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["score", "rouge", "--hyp", "hyp", "--ref", "ref", "--sentence-marker", "<q>"]) == 0
    lines = capsys.readouterr().out.splitlines()
    labels = [line[:20].split() for line in lines[1:10]]
    assert [label[0] for label in labels if len(label) == 2] == ["ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert [label[-1] for label in labels] == ["F1", "precision", "recall"] * 3
    numbers = [float(number) for number in re.findall(r"\d+\.\d{3}", lines[7])]
    expected = rouge.score(HYPOTHESES, REFERENCES, "<q>")
    low, high = expected.intervals["rougeL"].f1
    shares = [expected.means["rougeL"].f1, low, high, expected.script_averages["rougeL"].f1]
    assert numbers == [round(100 * share, 3) for share in shares]
    assert lines[-1] == expected.signature
    assert "2 summaries with 1.50 sentences each, references 1.50" in lines


def test_a_baseline_is_tested_against_in_each_metric(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["--hyp", "ref", "--ref", "ref", "--sentence-marker", "<q>", "--baseline", "hyp"]
    expected = paired_bootstrap(HYPOTHESES, {"ref": REFERENCES}, REFERENCES, "<q>")
    assert scored(capsys, *arguments)["paired"] == [result.to_dict() for result in expected]
    assert cli.main(["score", "rouge", *arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-7] == f"Paired bootstrap test (F1, mean ± 95% interval)  {expected[0].signature}"
    for line, result in zip(lines[-6:], expected):
        assert line.split()[0] == f"{result.f1:.2f}"
        assert line.endswith(f"ROUGE-{result.metric[5:]}  {result.name}")
        assert ("p = " not in line) if result.p_value is None else (f"p = {result.p_value:.4f}  " in line)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--hyp", "hyp", "--ref", "ref", "--baseline", "short"], "short has 1 sentences, but hyp has 2. Both have"),
        (["--hyp", "hyp", "--ref", "short"], "hyp has 2 hypotheses, but short has 1 lines"),
        (["--hyp", "hyp", "--ref", "nowhere"], "There is no file nowhere"),
        (["--hyp", "hyp"], "There is no reference for hyp. Give one with --ref."),
        (["--hyp", "hyp", "--ref", "ref", "--ref", "hyp"], "one reference per summary, but --ref is given 2 times"),
        (["--hyp", "hyp", "--ref", "ref", "--sentence-marker", "<s>"], "has the sentence marker <s>. Check"),
        (["--hyp", "hyp", "--ref", "ref", "--sentence-marker", ""], "The sentence marker is empty"),
        (["--hyp", "hyp", "--ref", "ref", "--detokenize", "en"], "--detokenize goes with --generate"),
        (["--hyp", "generate.log", "--ref", "ref"], "is fairseq-generate's output, not plain text"),
        (["--hyp", "hyp", "--ref", "ref", "--exceptions", "nowhere"], "There is no file nowhere"),
        (
            ["--hyp", "hyp", "--ref", "ref", "--exceptions", "noun.exc", "--like", "rouge-score"],
            "rouge-score takes no list of exceptions",
        ),
    ],
)
def test_unfit_input_is_one_line(capsys: pytest.CaptureFixture[str], arguments: list[str], message: str) -> None:
    assert cli.main(["score", "rouge", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1
