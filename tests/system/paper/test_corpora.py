"""The corpora of the paper from archive to fairseq's data: the real commands on stand-ins, also killed half-way."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fairseq.data import Dictionary, data_utils

NEWSTESTS = {f"newstest{year}": 20 + number for number, year in enumerate(range(2012, 2019))}

pytestmark = pytest.mark.slow


def ids(folder: Path, name: str, dictionary: Dictionary) -> list[str]:
    """The lines of a binarized file, as symbols."""
    return [dictionary.string(line) for line in data_utils.load_indexed_dataset(str(folder / name), dictionary)]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").split("\n")[:-1]


def joined(symbols: str) -> str:
    """Moses tokens of BPE symbols."""
    return symbols.replace(" ", "").replace("▁", " ").strip()


def assert_same_tokens(encoded: list[str], text: Path, few: float = 0.005) -> None:
    """Symbols joined to words are the tokenized text, but for the few letters that so small a BPE has not seen."""
    tokens = lines(text)[: len(encoded)]
    assert len(encoded) == len(tokens)
    for symbols, line in zip(encoded, tokens):
        known = joined(symbols).split("<unk>")
        assert re.fullmatch(".+".join(map(re.escape, known)), line), line
    unknown = sum(symbols.count("<unk>") for symbols in encoded)
    assert unknown <= few * sum(len(symbols.split()) for symbols in encoded)


def test_a_preparation_that_was_killed_goes_on_and_is_not_done_again(laboratory: Any) -> None:
    """The fixture killed it; it checks that nothing finished was made anew."""
    assert "text.bitext" not in laboratory.said["wmt18_ende"]
    assert not list(laboratory.data.rglob("*.partial"))
    again = laboratory.prepare("wmt18_ende", "--subsets", "160K", "--bitext-bpe")
    assert "everything is there" in again


def test_english_german_has_nested_subsets_and_every_newstest(laboratory: Any) -> None:
    folder = laboratory.data / "wmt18_ende"
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    assert len(dictionary) == 604
    small, whole = (ids(folder / f"bitext-{name}", "train.en-de.de", dictionary) for name in ("160K", "5186K"))
    assert small == whole[:16]
    counts = json.loads((folder / "prepare.json").read_text())["counts"]
    assert counts["text.bitext"]["pairs"]["commoncrawl"] == 250
    selected = counts["tok.train"]
    assert selected["dropped_empty"] == selected["dropped_long"] == 4
    assert sum(selected.values()) == 700
    assert len(whole) == selected["train"]
    assert_same_tokens(whole, folder / "tok" / "train.de")
    called = [line.split("\t") for line in lines(folder / "testsets.tsv")]
    assert [name for _, name in called] == ["newstest2018", *list(NEWSTESTS)[:6]]
    for split, name in called:
        assert len(ids(folder / "bitext-160K", f"{split}.en-de.de", dictionary)) == NEWSTESTS[name]
        assert len(lines(folder / "text" / f"{name}.de")) == NEWSTESTS[name]


def test_english_german_has_text_for_both_lms_and_a_bpe_of_the_bitexts_own(laboratory: Any) -> None:
    folder = laboratory.data / "wmt18_ende"
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    for lang in ("en", "de"):
        assert (folder / f"lm.{lang}" / "dict.txt").read_bytes() == (folder / "dict.txt").read_bytes()
        assert len(ids(folder / f"lm.{lang}", "valid", dictionary)) == 20
        assert len(ids(folder / f"lm.{lang}", "train", dictionary)) == 640
    own = folder / "bitext-bpe-160K"
    own_dictionary = Dictionary.load(str(own / "dict.txt"))
    assert own_dictionary.symbols != dictionary.symbols
    assert_same_tokens(ids(own, "train.en-de.en", own_dictionary), folder / "tok" / "train.en", few=0)


def test_the_papers_numbers_stand_beside_what_came_out(laboratory: Any) -> None:
    assert "300 pairs (setimes2 300), paper: 208,000" in laboratory.said["wmt18_entr"]
    assert "(paper: 260,000,000 sentences)" in laboratory.said["wmt18_ende"]
    said = laboratory.said["cnn_dm"]
    assert "train: 120 stories listed (paper: 287,227), 118 kept, 2 without an article, 0 without highlights" in said
    assert "(paper: 13,368)" in said
    assert "(paper: 11,490)" in said
    for shown in laboratory.said.values():
        assert " stages to do; disk space: about " in shown.splitlines()[0]


def test_english_turkish_shares_the_joint_bpe_on_the_english_side(laboratory: Any) -> None:
    folder = laboratory.data / "wmt18_entr"
    assert (folder / "dict.txt").read_bytes() == (laboratory.data / "wmt18_ende" / "dict.txt").read_bytes()
    assert (folder / "dict.txt").read_bytes() == (folder / "bitext-all" / "dict.en.txt").read_bytes()
    turkish = Dictionary.load(str(folder / "bitext-all" / "dict.tr.txt"))
    assert len(turkish) == 304
    assert_same_tokens(ids(folder / "bitext-all", "train.en-tr.tr", turkish), folder / "tok" / "bitext.tr")
    for split, name in (("valid", "newstest2017"), ("test", "newstest2018")):
        assert len(ids(folder / "bitext-all", f"{split}.en-tr.tr", turkish)) == NEWSTESTS[name]
        assert lines(folder / "text" / f"{split}.tr") == lines(folder / "text" / f"{name}.tr")


def test_summaries_keep_their_sentences(laboratory: Any) -> None:
    folder = laboratory.data / "cnn_dm"
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    summaries = ids(folder / "bitext-all", "test.article-summary.summary", dictionary)
    assert len(summaries) == 10
    assert all(line.split().count("▁¶") == 1 for line in summaries), "one symbol, known to the BPE"
    assert [line.count(" ¶ ") for line in lines(folder / "text" / "test.summary")] == [1] * 10
    sentences = json.loads((folder / "prepare.json").read_text())["counts"]["lm.en"]["files"]["train"]["sentences"]
    stories = len(lines(folder / "tok" / "stories.train.en"))
    assert 640 < sentences <= 640 + stories
