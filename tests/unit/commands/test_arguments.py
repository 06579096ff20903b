"""Numbers on the command line that nothing can work with: refused by name, before anything is read or written."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.cli import main

PAIRS = "data --pairs a.en a.de --out out"
HUGE = 2**64


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (f"{PAIRS} --max-ratio nan", "--max-ratio"),
        (f"{PAIRS} --max-ratio -1", "--max-ratio"),
        (f"{PAIRS} --max-ratio 0.5", "--max-ratio"),
        (f"{PAIRS} --workers 0", "--workers"),
        (f"{PAIRS} --workers -3", "--workers"),
        (f"{PAIRS} --seed {HUGE}", "--seed"),
        ("data --tsv a.tsv --fields 1,1 -s en -t de --out out", "--fields"),
        ("train data --out out --minutes nan", "--minutes"),
        ("train data --out out --minutes inf", "--minutes"),
        ("train data --out out --seed -1", "--seed"),
        (f"train data --out out --seed {HUGE}", "--seed"),
        (f"translate model --sampling --seed {HUGE}", "--seed"),
        ("train data --out out --set BEAM=1 BEAM=2", "BEAM"),
        ("embed --corpus text --out v.vec --lr nan", "--lr"),
        ("embed --corpus text --out v.vec --sample -1", "--sample"),
        ("embed --corpus text --out v.vec --seed -1", "--seed"),
        ("score seeds --hyp a a --baseline b --ref r", "a is given twice"),
        ("score buckets --hyp a=x a=y b=z --src s --ref r", "same name"),
    ],
)
def test_a_number_that_cannot_be_is_named(
    words: str, named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    assert named in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("content", "named"),
    [(b"One\rTwo\rThree\r", "carriage returns"), ("One\nTwo\n".encode("utf-16"), "UTF-16")],
)
def test_text_in_another_form_is_named_and_not_translated(
    content: bytes, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "new.en").write_bytes(content)
    assert main(["translate", "model", str(tmp_path / "new.en")]) == 2
    assert named in capsys.readouterr().err
