"""Which scores stand in one table, and which are averaged over test sets."""

from __future__ import annotations

from lmfusion.report.page.notices import WARNING


def test_different_reference_texts_are_different_tables_and_it_is_said(maker, compared, texts) -> None:
    maker.run("a", bleu=10.0)
    maker.run("b", "src_ft", scores={"test": maker.bleu(20.0, reference="another text")})
    comparisons, notices = compared(maker.folder)
    assert [[run.name for run in comparison.runs] for comparison in comparisons] == [["a"], ["b"]]
    assert len({comparison.slug for comparison in comparisons}) == 2
    (warning,) = texts(notices, WARNING)
    assert warning.startswith("different test sets are called 'test (en-de)' (a: reference ")
    assert "not compared" in warning


def test_scores_computed_in_different_ways_are_different_tables_and_it_is_said(maker, compared, texts) -> None:
    maker.run("a", bleu=10.0)
    maker.run("b", "src_ft", scores={"test": {**maker.bleu(20.0), "signature": "BLEU|tok:none"}})
    comparisons, notices = compared(maker.folder)
    assert len(comparisons) == 2
    (warning,) = texts(notices, WARNING)
    assert "computed in different ways" in warning
    assert "b: BLEU|tok:none" in warning


def test_other_languages_and_test_sets_are_tables_of_their_own_without_a_warning(maker, compared, texts) -> None:
    maker.run("a", scores={"test": maker.bleu(1.0), "second": maker.bleu(2.0, "second", "other")})
    maker.pair = ("en", "tr")
    maker.run("b", bleu=3.0)
    comparisons, notices = compared(maker.folder)
    titles = [comparison.task.title for comparison in comparisons]
    assert titles == ["test (en-de)", "second (en-de)", "test (en-tr)"]
    assert texts(notices, WARNING) == []


def test_the_newstests_of_a_language_pair_are_averaged_over_those_scored_on_all(maker, compared) -> None:
    names = ("newstest2012", "newstest2013")
    maker.run("a", scores={name: maker.bleu(value, name, name) for name, value in zip(names, (10, 20))})
    maker.run("b", "src_ft", scores={name: maker.bleu(value, name, name) for name, value in zip(names, (30, 50))})
    maker.run("c", "tgt_ft", scores={names[0]: maker.bleu(40.0, *names[:1] * 2)})
    comparisons, _ = compared(maker.folder)
    average, first, second = comparisons
    assert average.task.title == "average of newstest2012 to newstest2013 (en-de)"
    values = [average.values(row.cell(2500), "BLEU") for row in average.rows]
    assert values == [[15.0], [40.0], []]
    assert average.rows[2].cell(2500).left_out[0][1] == "not scored on newstest2013"
    assert [len(comparison.rows) for comparison in (first, second)] == [3, 2]
