"""Files that commands write: with a name of their own, not in the place of an input."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion import InputError
from lmfusion.checkpoint.atomic_files import replacing
from lmfusion.cli import main
from lmfusion.text.textio import writing


@pytest.mark.parametrize("name", ["", ".", "/", ".."])
def test_a_path_without_a_name_is_refused(name: str) -> None:
    with pytest.raises(InputError, match="name"), replacing(name):
        pass
    with pytest.raises(InputError, match="name"), writing(Path(name)):
        pass


def test_predictions_do_not_take_the_place_of_what_is_labelled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_text("sentence\tlabel\nfine\t1\n", encoding="utf-8")
    words = ["predict", str(tmp_path / "model.pt"), "--input", str(path), "--output", str(tmp_path / "." / "mine.tsv")]
    assert main(words) == 2
    assert "mine.tsv" in capsys.readouterr().err
    assert path.read_text(encoding="utf-8").startswith("sentence")


@pytest.mark.parametrize("words", ["train d --rows x --set A=1 --set B=2 C=3", "score buckets --hyp a=A --hyp b=B"])
def test_an_option_with_several_values_may_be_given_several_times(words: str) -> None:
    from lmfusion.cli import build_parser

    more = ["--out", "o"] if words.startswith("train") else ["--src", "s", "--ref", "r"]
    args = build_parser().parse_args([*words.split(), *more])
    assert (args.set if "--set" in words else args.hyp) == (
        ["A=1", "B=2", "C=3"] if "--set" in words else ["a=A", "b=B"]
    )
