"""The published figures, against the specification's tables and what the paper says of them in words."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lmfusion.cli import main
from lmfusion.report.page import published

SPEC = Path(__file__).parents[5] / "shared" / "SPEC.md"
SIZES = {"160K": 160_000, "320K": 320_000, "640K": 640_000, "1280K": 1_280_000, "2560K": 2_560_000, "5186K": 5_186_000}
ALL_YEARS = tuple(f"newstest{year}" for year in range(2012, 2019))
EN_DE = ("en", "de")


@pytest.mark.skipif(not SPEC.exists(), reason="the specification is not beside the repository")
def test_every_score_of_the_specifications_table() -> None:
    text = SPEC.read_text(encoding="utf-8")
    found = 0
    for strategy, row in re.findall(r"^\| ([\w+-]+) \|((?: [\d.]+ / [\d.]+ \|){6})$", text, re.MULTILINE):
        for (name, size), pair in zip(SIZES.items(), row.split("|")):
            newest, average = map(float, pair.split("/"))
            assert published.score(["newstest2018"], EN_DE, strategy, size, "BLEU") == newest, (strategy, name)
            mean = published.score(ALL_YEARS, EN_DE, strategy, size, "BLEU")
            assert mean == pytest.approx(average, abs=0.0501), (strategy, name)
            found += 1
    assert found == 7 * 6


def test_what_the_paper_says_of_its_figure_1() -> None:
    """Section 4.1: +3.8 for SRC-ELMO and +5.3 with SHDEMB at 160K; SHARED erodes to about zero at 5.2M."""
    assert dict(published.differences("SRC-ELMO"))[160_000] == pytest.approx(3.8, abs=0.05)
    assert dict(published.differences("SRC-ELMO+SHDEMB"))[160_000] == pytest.approx(5.3, abs=0.05)
    assert abs(dict(published.differences("SHARED"))[5_186_000]) < 0.1


def test_what_the_paper_says_of_its_table_5() -> None:
    """Section 4.1: SRC-ELMO trains 5.3 times slower, SRC-FT 9.2 times; generation is 12-14% slower."""
    assert 1 / published.speed_ratio("SRC-ELMO", 0) == pytest.approx(5.3, abs=0.05)
    assert 1 / published.speed_ratio("SRC-FT", 0) == pytest.approx(9.2, abs=0.05)
    assert 1 - published.speed_ratio("SRC-ELMO", 1) == pytest.approx(0.14, abs=0.005)
    assert published.speed_ratio("baseline", 0) is None


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ((["wmt18"], EN_DE, "baseline", 160_000, "BLEU"), 21.4),
        ((["newstest2018"], EN_DE, "baseline", 161_000, "BLEU"), 21.4),
        ((["newstest2018"], EN_DE, "baseline", 165_000, "BLEU"), None),
        ((["newstest2018"], EN_DE, "baseline", None, "BLEU"), None),
        ((["newstest2018"], ("de", "en"), "baseline", 160_000, "BLEU"), None),
        ((["newstest2018"], EN_DE, "baseline", 160_000, "chrF"), None),
        ((["newstest2018"], EN_DE, "SRC-FT+SHDEMB", 160_000, "BLEU"), None),
        ((["test"], EN_DE, "baseline", 160_000, "BLEU"), None),
        ((["newstest2019"], EN_DE, "baseline", 160_000, "BLEU"), None),
        ((["newstest2017"], ("en", "tr"), "SRC-ELMO+SHDEMB", 207_678, "BLEU"), 12.9),
        ((["cnn_dm"], ("article", "summary"), "Lead-3", None, "ROUGE-L"), 36.57),
        ((["cnn_dm"], ("article", "summary"), "SRC-ELMO+SHDEMB", 287_000, "ROUGE-2"), 18.94),
        ((["cnn_dm"], ("article", "summary"), "SRC-FT", 287_000, "ROUGE-2"), None),
        ((["test"], ("article", "summary"), "baseline", 287_000, "ROUGE-1"), None),
    ],
)
def test_a_figure_only_where_there_is_one(arguments: tuple, value: float | None) -> None:
    assert published.score(*arguments) == value


@pytest.mark.parametrize(
    ("test_sets", "pair", "is_covered"),
    [
        ({"newstest2018": 2998}, EN_DE, True),
        ({"wmt18": 2998}, EN_DE, True),
        ({"wmt18": 2998, "wmt17": 3004}, EN_DE, True),
        ({"wmt18": 2998, "wmt17": 2998}, EN_DE, False),
        ({"newstest2018": 100}, EN_DE, False),
        ({"newstest2018": None}, EN_DE, False),
        ({"newstest2018": 2998}, ("de", "en"), False),
        ({"newstest2018": 3000}, ("en", "tr"), True),
        ({"newstest2018": 2998}, ("en", "tr"), False),
        ({"newstest2019": 2998}, EN_DE, False),
        ({"test": 2998}, EN_DE, False),
        ({"cnn_dm": 11490}, ("article", "summary"), True),
        ({"cnn_dm": 1000}, ("article", "summary"), False),
        ({}, EN_DE, False),
    ],
)
def test_data_are_the_papers_by_name_languages_and_number_of_sentences(
    test_sets: dict[str, int | None], pair: tuple[str, str], is_covered: bool
) -> None:
    assert published.covers(test_sets, pair) == is_covered


def test_the_numbers_of_sentences_are_those_of_the_sources_that_are_fetched() -> None:
    sources = Path(__file__).parents[4] / "data-prep" / "sources.tsv"
    found = re.findall(r"^(newstest\d+)\t.*?\t([\w=,-]*\d)\t", sources.read_text(encoding="utf-8"), re.MULTILINE)
    counted = [(name, *entry.split("=")) for name, entries in found for entry in entries.split(",")]
    assert len(counted) == 9
    for name, pair, count in counted:
        assert published.covers({name: int(count)}, tuple(pair.split("-")))


@pytest.mark.slow
@pytest.mark.parametrize(("sentences", "is_shown"), [(2998, True), (3, False)])
def test_the_papers_figure_is_on_the_page_only_where_the_data_are_the_papers(
    maker, tmp_path: Path, sentences: int, is_shown: bool
) -> None:
    for strategy in ("baseline", "src_ft"):
        scores = {"newstest2018": maker.bleu(20.0, "newstest2018", sentences=sentences)}
        path = maker.run(strategy, strategy, scores=scores, size=160_000)
        (path / "newstest2018.hyp").write_text("a\n" * sentences, encoding="utf-8")
    assert main(["report", str(maker.folder), "--out", str(tmp_path / "out")]) == 0
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert ("Edunov" in page) == is_shown
    assert (tmp_path / "out" / "published-difference.svg").exists() == is_shown
