"""Corpus folders with made-up pairs beside the real ones."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for split, count in (("train", 3), ("valid", 2), ("test", 1)):
        for lang in ("en", "de"):
            text = "".join(f"{split} {number} {lang}\n" for number in range(count))
            (folder / f"{split}.{lang}").write_text(text, encoding="utf-8")
    (tmp_path / "made.en").write_text("made 0\n\nmade 2\n", encoding="utf-8")
    (tmp_path / "mono.de").write_text("mono 0\nmono 1\nmono 2\n", encoding="utf-8")
    return folder


def joined(corpus: Path, *flags: str, source: str = "made.en") -> subprocess.CompletedProcess[str]:
    place = corpus.parent
    words = [str(corpus), "-s", "en", "-t", "de", "--add", str(place / source), str(place / "mono.de")]
    command = [sys.executable, "-m", "lmfusion.text.synthetic", *words, "--out", str(place / "out"), *flags]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def test_real_pairs_come_first_and_made_up_ones_without_words_are_left_out(corpus: Path) -> None:
    assert joined(corpus, "--pairs", "2", "--upsample", "2", "--tag", "<BT>").returncode == 0
    out = corpus.parent / "out"
    real = ["train 0", "train 1"] * 2
    assert lines(out / "train.en") == [*(f"{text} en" for text in real), "<BT> made 0", "<BT> made 2"]
    assert lines(out / "train.de") == [*(f"{text} de" for text in real), "mono 0", "mono 2"]
    for name in ("valid.en", "valid.de", "test.en", "test.de"):
        assert lines(out / name) == lines(corpus / name)


def test_a_student_may_learn_from_made_up_pairs_alone(corpus: Path) -> None:
    assert joined(corpus, "--upsample", "0").returncode == 0
    assert lines(corpus.parent / "out" / "train.de") == ["mono 0", "mono 2"]


@pytest.mark.parametrize(
    ("flags", "named"),
    [(("--pairs", "some"), "--pairs some"), (("--upsample", "-1"), "--upsample -1")],
)
def test_what_is_no_number_is_refused_and_nothing_is_written(corpus: Path, flags: tuple[str, ...], named: str) -> None:
    done = joined(corpus, *flags)
    assert done.returncode != 0
    assert named in done.stderr
    assert "Traceback" not in done.stderr
    assert not (corpus.parent / "out").exists()


def test_files_of_different_lengths_and_folders_that_are_there_are_refused(corpus: Path) -> None:
    (corpus.parent / "short.en").write_text("one\n", encoding="utf-8")
    done = joined(corpus, source="short.en")
    assert done.returncode != 0
    assert "short.en has 1 lines" in done.stderr
    assert joined(corpus).returncode == 0
    again = joined(corpus)
    assert again.returncode != 0
    assert "is there already" in again.stderr
