"""What ``lmfusion data`` says at its end; the folder itself is made by a stand-in."""

from __future__ import annotations

from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.text import own_data
from lmfusion.text.prepared import SUMMARIZATION, TRANSLATION, Prepared


@pytest.mark.parametrize("has_mecab", [True, False])
@pytest.mark.parametrize(
    ("target", "kind", "said"),
    [
        ("ja", TRANSLATION, {True: "tok:ja-mecab", False: "sacrebleu[ja]"}),
        ("ko", TRANSLATION, {True: "tok:ko-mecab", False: "sacrebleu[ko]"}),
        ("zh_CN", TRANSLATION, {True: "tok:zh", False: "tok:zh"}),
        ("th", TRANSLATION, {True: "tok:char", False: "tok:char"}),
        ("fr", TRANSLATION, None),
        ("th", SUMMARIZATION, None),
    ],
)
def test_the_tokenization_of_bleu_is_told_where_it_is_not_13a(
    tmp_path: Path, target: str, kind: str, said: dict[bool, str] | None, has_mecab: bool,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    made = Prepared(tmp_path, "en", target, kind, pairs=10_000, symbols={"en": 4_000_000, target: 1_000_000})
    monkeypatch.setattr(own_data, "make", lambda request, out, settings: made)
    monkeypatch.setattr("lmfusion.scoring.bleu_metric.find_spec", lambda name: object() if has_mecab else None)
    files = [str(tmp_path / f"a.{language}") for language in ("en", target)]
    assert main(["data", "--pairs", *files, "--out", str(tmp_path / "out")]) == 0
    *before, last = capsys.readouterr().out.splitlines()
    assert last.startswith("Next: ")
    if said is None:
        assert not before
    else:
        (line,) = before
        assert said[has_mecab] in line
        assert target in line
