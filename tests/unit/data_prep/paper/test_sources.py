"""The table of sources."""

from __future__ import annotations

from pathlib import Path

import pytest
from paper_corpora import cnn_dm, newscrawl, sources, wmt18_ende, wmt18_entr
from sacrebleu.dataset import DATASETS

from lmfusion.text import textio

TABLE = sources.read_table(sources.TABLE)


def test_every_corpus_of_the_paper_is_in_the_table_and_in_the_stand_ins(standin_sources: Path) -> None:
    names = {f"newscrawl.{year}.{lang}" for year in newscrawl.YEARS for lang in newscrawl.EXPECTED}
    names |= {*wmt18_ende.ENDE.bitext, *wmt18_ende.ENDE.test_sets, *wmt18_entr.ENTR.bitext, *wmt18_entr.ENTR.test_sets}
    names |= {*cnn_dm.LISTS.values(), *cnn_dm.ARCHIVES}
    assert set(TABLE) == names
    standins = sources.read_table(standin_sources)
    assert {name: row.file for name, row in standins.items()} == {name: row.file for name, row in TABLE.items()}


def test_the_counts_are_the_published_ones() -> None:
    assert {split: TABLE[name].counts["urls"].number for split, name in cnn_dm.LISTS.items()} == cnn_dm.EXPECTED
    bitext = [TABLE[name].counts["en-de"].number for name in wmt18_ende.ENDE.bitext]
    assert bitext == [1_920_209, 2_399_123, 284_246, 1_329_041]
    assert TABLE["setimes2"].counts["en-tr"].number == 207_678


@pytest.mark.parametrize("year", range(2012, 2019))
def test_the_test_sets_are_those_that_sacrebleu_scores_by_name(year: int) -> None:
    theirs = DATASETS["wmt14/full" if year == 2014 else f"wmt{year - 2000}"]
    assert TABLE[f"newstest{year}"].checksum == f"md5:{theirs.md5[0]}"
    assert list(wmt18_ende.ENDE.test_sets[f"newstest{year}"]) == theirs.langpairs["en-de"]
    if year > 2016:
        assert list(wmt18_entr.ENTR.test_sets[f"newstest{year}"]) == theirs.langpairs["en-tr"]


HEAD = "\t".join(sources.COLUMNS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("name\turl\n", "not a table of sources"),
        (f"{HEAD}\na\tb\n", "line 2: 2 columns instead of 8"),
        (f"{HEAD}\na\tf\tu\t-\t-\t-\t-\t-\n", "line 2: bytes: give the size, or an estimate"),
        (f"{HEAD}\na\tf\tu\t~x\t-\t-\t-\t-\n", "line 2: ~x: not a number"),
        (f"{HEAD}\na\tf\tu\t1\tcrc:9\t-\t-\t-\n", "line 2: checksum crc:9: expected one of sha256"),
        (f"{HEAD}\n" + "a\tf\tu\t1\t-\t-\t-\t-\n" * 2, "line 3: a is there twice"),
    ],
)
def test_a_bad_table_is_refused_with_the_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "sources.tsv").write_text(text, encoding="utf-8")
    with pytest.raises(textio.DataError, match=message):
        sources.read_table(tmp_path / "sources.tsv")


@pytest.mark.parametrize("word", ["rapid2016", "nothing=x", "rapid2016=absent"])
def test_a_wrong_local_file_is_refused(word: str) -> None:
    with pytest.raises(textio.DataError, match=f"--local {word}: "):
        sources.with_local_files(TABLE, [word])
