"""Pairs of two kinds of text in one language: a description and its synopsis, beside a bitext in the same folder."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

from lmfusion.text import prepare, textio

PAIRS = ["-s", "description", "-t", "synopsis", "--pairs", "synopsis", "--text-lang", "en", "--max-ratio", 0]
BPE = ["--bpe-size", 120, "--workers", 1]


@pytest.fixture
def with_synopses(corpus_folder: Path) -> Path:
    """The corpus folder, with three sentences and their first one as further pairs."""
    for split in ("train", "valid", "test"):
        synopses = list(textio.read_lines(corpus_folder / f"{split}.en"))
        descriptions = [" ".join(three) for three in zip(synopses, synopses[1:] + synopses, synopses[2:] + synopses)]
        for side, lines in (("description", descriptions), ("synopsis", synopses)):
            (corpus_folder / f"synopsis.{split}.{side}").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return corpus_folder


def prepare_in_process(monkeypatch: pytest.MonkeyPatch, *words: object) -> None:
    """Run the command in this process: quicker, and its errors are exceptions."""
    monkeypatch.setattr(sys, "argv", ["prepare.py", *map(str, words)])
    prepare.Preparation(prepare.parse_args()).run()


@pytest.mark.slow
def test_both_sides_have_the_language_models_dictionary_and_tokens(
    with_synopses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    prepare_in_process(monkeypatch, with_synopses, "--out", out, *PAIRS, *BPE)
    for name in ("bitext-all/dict.description.txt", "bitext-all/dict.synopsis.txt", "lm.en/dict.txt"):
        assert (out / name).read_bytes() == (out / "dict.txt").read_bytes()
    assert not (out / "lm.synopsis").exists()
    assert not (out / "text" / "mono.train.de").exists()

    for side in ("description", "synopsis"):
        raw = (with_synopses / f"synopsis.test.{side}").read_text(encoding="utf-8")
        assert (out / "text" / f"test.{side}").read_text(encoding="utf-8") == raw
        tokens = (out / "tok" / f"test.{side}").read_text(encoding="utf-8")
        assert " don 't " in tokens, "English splits so; a language that Moses does not know, don ' t"
    dictionary = Dictionary.load(str(out / "dict.txt"))
    test = data_utils.load_indexed_dataset(str(out / "bitext-all" / "test.description-synopsis.synopsis"), dictionary)
    assert dictionary.string(test[7]) == list(textio.read_lines(out / "bpe" / "test.synopsis"))[7]


def test_a_missing_file_is_asked_for_under_its_own_name(
    with_synopses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (with_synopses / "synopsis.valid.synopsis").unlink()
    message = r"synopsis\.valid\.synopsis: no such file .* needs synopsis\.train\.description, .*, mono\.train\.en"
    with pytest.raises(textio.DataError, match=message):
        prepare_in_process(monkeypatch, with_synopses, "--out", tmp_path / "out", *PAIRS, *BPE)


def test_the_folder_is_not_prepared_for_both_kinds_of_pairs(
    with_synopses: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prepare.binarize, "fairseq_preprocess", lambda work, flags, log: {})
    out = tmp_path / "out"
    prepare_in_process(monkeypatch, with_synopses, "--out", out, "-s", "en", "-t", "de", "--max-ratio", 0, *BPE)
    with pytest.raises(textio.DataError, match=r"was prepared with .*_lang = .*\. Choose another --out"):
        prepare_in_process(monkeypatch, with_synopses, "--out", out, *PAIRS, *BPE)
