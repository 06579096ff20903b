"""Test sets by name: the references that sacreBLEU's own command takes, and every way in which they cannot be had."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from pathlib import Path
from urllib.error import URLError

import pytest
from sacrebleu.dataset import DATASETS

from lmfusion import cli
from lmfusion.errors import InputError
from lmfusion.scoring import bleu, named_test_sets

REFERENCE = ["Der Hund biss den Mann .", "Das war nicht überraschend ."]
HYPOTHESES = ["Der Hund biss einen Mann .", "Das war keine Überraschung ."]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in place of sacreBLEU's."""
    folder = tmp_path / "sacrebleu" / "wmt18"
    monkeypatch.setattr(DATASETS["wmt18"], "_outdir", str(folder))
    monkeypatch.setattr(DATASETS["wmt18"], "_rawdir", str(folder / "raw"))
    return folder


@pytest.fixture
def downloaded(cache: Path) -> Path:
    """The same, as after a download of a test set of two sentences, and a system's output beside it."""
    cache.mkdir(parents=True)
    for pair in ("en-de", "en-zh"):
        for field in ("src", "ref", "docid", "genre", "origlang"):
            text = "".join(f"{line}\n" for line in REFERENCE)
            (cache / f"wmt18.{pair}.{field}").write_text(text, encoding="utf-8")
    (cache / "hyp").write_text("".join(f"{line}\n" for line in HYPOTHESES), encoding="utf-8")
    return cache


def offline(monkeypatch: pytest.MonkeyPatch, answer: Callable[[str], io.BytesIO]) -> None:
    monkeypatch.setattr(urllib.request, "urlopen", answer)


def test_references_are_those_of_the_name(downloaded: Path) -> None:
    assert named_test_sets.references("wmt18", "en-de") == [REFERENCE]


def test_score_equals_sacrebleu_command(downloaded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["-t", "wmt18", "-l", "en-de", "-i", str(downloaded / "hyp"), "-w", "6"]
    command = [sys.executable, "-m", "sacrebleu", *flags]
    environment = {"SACREBLEU": str(downloaded.parent), "PATH": ""}
    printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    official = json.loads(printed.stdout)

    arguments = ["--hyp", str(downloaded / "hyp"), "--test-set", "wmt18", "--language-pair", "en-de", "--json"]
    assert cli.main(["score", "bleu", *arguments]) == 0
    ours = json.loads(capsys.readouterr().out)

    assert round(ours["bleu"], 6) == official["score"] > 0
    assert ours["signature"] == f"BLEU|{official['signature']}"
    assert ours["legacy_signature"].startswith("BLEU+case.mixed+lang.en-de+numrefs.1+smooth.exp+test.wmt18+tok.13a")


def test_chinese_is_tokenized_as_sacrebleu_does_for_chinese() -> None:
    score = bleu.score(["我爱你"], [["我爱他"]], language_pair="en-zh")
    assert "|tok:zh|" in score.signature
    assert score.reference_length == 3


def test_other_number_of_sentences_names_both(downloaded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (downloaded / "hyp").write_text("eins\n", encoding="utf-8")
    arguments = ["--hyp", str(downloaded / "hyp"), "--test-set", "wmt18", "--language-pair", "en-de"]
    assert cli.main(["score", "bleu", *arguments]) == 2
    assert "hyp has 1 hypotheses, but wmt18 en-de has 2 lines" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "pair", "message"),
    [
        ("wmt81", "en-de", "knows no test set wmt81. Did you mean .*wmt18"),
        ("wmt18", "en-xx", "wmt18 has no language pair en-xx. It has: .*en-de"),
    ],
)
def test_unknown_name_is_an_error_with_the_known_ones(name: str, pair: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        named_test_sets.references(name, pair)


def test_no_network_is_an_error_with_the_ways_round_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_network(url: str) -> io.BytesIO:
        raise URLError("Name or service not known")

    offline(monkeypatch, no_network)
    with pytest.raises(InputError, match=r"cannot be downloaded \(Name or service not known\).*--ref, or copy .*wmt18"):
        named_test_sets.references("wmt18", "en-de")


def test_broken_download_is_an_error_and_no_exit(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    offline(monkeypatch, lambda url: io.BytesIO(b"<html>not found</html>"))
    with pytest.raises(InputError, match=r"cannot be downloaded \(sacreBLEU gave up\).*delete that folder"):
        named_test_sets.references("wmt18", "en-de")
    with pytest.raises(InputError, match="cannot be downloaded"):  # the broken file is there now
        named_test_sets.references("wmt18", "en-de")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--test-set", "wmt18"], "--language-pair"),
        (["--test-set", "wmt18", "--language-pair", "en-de", "--ref", "ref"], "leave out --ref, or --test-set"),
    ],
)
def test_flags_that_do_not_fit(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["score", "bleu", "--hyp", "hyp", *arguments]) == 2
    assert message in capsys.readouterr().err
