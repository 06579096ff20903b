"""lead.py: the first sentences, in the form that the scorer reads from fairseq-generate."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import lead
import pytest

from lmfusion.scoring import generate_output

TEXTS = [
    "Reads e.g. Dr. Who's files. It is written in C. It needs 2.5 MB.",
    "no full stop at all",
    "What is it? A tool! Indeed.",
]


def run(*words: object) -> subprocess.CompletedProcess[str]:
    """The command as a person gives it."""
    command = [sys.executable, lead.__file__, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (1, ["Reads e.g. Dr. Who's files.", "no full stop at all", "What is it?"]),
        (2, ["Reads e.g. Dr. Who's files. It is written in C.", "no full stop at all", "What is it? A tool!"]),
        (9, TEXTS),
    ],
)
def test_the_scorer_reads_the_first_sentences_as_hypotheses(tmp_path: Path, count: int, expected: list[str]) -> None:
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    done = run(tmp_path / "texts", "--sentences", count)
    assert done.returncode == 0, done.stderr
    (tmp_path / "generate.log").write_text(done.stdout, encoding="utf-8")
    generated = generate_output.read(tmp_path / "generate.log")
    assert generated.ids == [0, 1, 2]
    assert generated.hypotheses == expected
    assert generated.sources == TEXTS


def test_bad_input_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for words, message in (
        ([tmp_path / "absent"], "absent: no such file"),
        ([tmp_path / "empty"], "empty: empty file"),
        ([tmp_path / "empty", "--sentences", 0], "--sentences 0: give a number above 0"),
    ):
        done = run(*words)
        assert done.returncode == 1
        assert done.stderr.startswith("error: ")
        assert message in done.stderr
        assert done.stderr.count("\n") == 1


def test_a_marker_stands_between_the_sentences_of_a_summary(tmp_path: Path) -> None:
    """So that ROUGE-L can look at them one by one."""
    (tmp_path / "texts").write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    done = run(tmp_path / "texts", "--sentences", 2, "--sentence-marker", "¶")
    assert done.returncode == 0, done.stderr
    summaries = [line.split("\t")[2] for line in done.stdout.splitlines() if line.startswith("D-")]
    assert summaries == [
        "Reads e.g. Dr. Who's files. ¶ It is written in C.",
        "no full stop at all",
        "What is it? ¶ A tool!",
    ]
