"""The layout of the paper's tables 1, 3 and 4, with means and spreads worked out here by hand."""

from __future__ import annotations

import csv
import io

import numpy as np
import pytest

from lmfusion.report.page.score_tables import score_tables
from lmfusion.report.page.significance import Significance
from lmfusion.report.page.table import Cell, Table, size_name, to_csv, to_markdown
from lmfusion.scoring import rouge


def cells(table: Table) -> list[list[str]]:
    """The texts, notes in brackets."""
    return [[f"{cell.text} [{cell.note}]" if cell.note else cell.text for cell in row] for row in table.rows]


def test_one_table_a_metric_rows_strategies_columns_sizes_means_over_seeds(maker, compared) -> None:
    for seed, (base, elmo) in enumerate([(10.0, 13.0), (11.0, 14.5), (10.5, 12.7)], start=1):
        maker.run(f"base-{seed}", bleu=base, seed=seed, size=640000)
        maker.run(f"elmo-{seed}", "src_elmo", bleu=elmo, seed=seed, size=640000)
        maker.run(f"small-{seed}", bleu=base / 2, seed=seed, size=2500)
    ((comparison,), _) = compared(maker.folder)
    bleu, chrf = score_tables(comparison, Significance())
    assert (bleu.name, chrf.name) == ("bleu", "chrf")
    assert bleu.title == "BLEU on test (en-de) by number of training pairs"
    assert bleu.columns == ["", "2.5K", "640K"]
    # 10, 11, 10.5: deviations -0.5, 0.5, 0, so sqrt(0.5 / 2) = 0.5; 13, 14.5, 12.7: mean 13.4, sqrt(1.86 / 2) = 0.964
    assert cells(bleu) == [["baseline", "5.25 ± 0.25", "10.50 ± 0.50"], ["SRC-ELMO", "", "13.40 ± 0.96"]]
    assert cells(chrf)[0] == ["baseline", "25.25 ± 0.25", "30.50 ± 0.50"]
    assert not any(cell.best for row in (*bleu.rows, *chrf.rows) for cell in row), "nothing was tested"
    assert bleu.notes[0].startswith("Mean ± standard deviation (n - 1) over 3 seeds")
    assert bleu.notes[1:] == ["BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0"]
    assert chrf.notes[1:] == ["chrF2|nrefs:1"]


def test_the_csv_has_every_number_plainly(maker, compared) -> None:
    values = [21.123456, 22.5, 20.25]
    for seed, value in enumerate(values, start=1):
        maker.run(f"base-{seed}", bleu=value, seed=seed, size=2500)
    maker.run("lost", bleu=99.0, seed=4, size=2500, losses=(float("nan"),))
    ((comparison,), _) = compared(maker.folder)
    (table,) = score_tables(comparison, Significance())
    first, *_ = csv.DictReader(io.StringIO(to_csv(table)))
    assert (first["row"], first["pairs"], first["metric"], first["seeds"]) == ("baseline", "2500", "BLEU", "3")
    assert float(first["mean"]) == pytest.approx(np.mean(values), abs=1e-4)
    assert float(first["standard deviation"]) == pytest.approx(np.std(values, ddof=1), abs=1e-4)
    assert [float(value) for value in first["scores"].split()] == pytest.approx(values, abs=1e-4)
    assert first["left out"].startswith("lost: NaN or infinite")


def test_one_size_has_a_column_a_metric_as_table_3(maker, compared) -> None:
    for seed, scores in enumerate([(0.40, 0.17, 0.36), (0.42, 0.19, 0.38)], start=1):
        maker.run(f"base-{seed}", scores={"test": maker.rouge(*scores)}, seed=seed, size=10000)
    maker.run("elmo", "src_elmo_shdemb", scores={"test": maker.rouge(0.45, 0.20, 0.40)}, size=10000)
    ((comparison,), _) = compared(maker.folder)
    (table,) = score_tables(comparison, Significance())
    assert table.title == "test (en-de), 10K training pairs"
    assert table.columns == ["", "ROUGE-1", "ROUGE-2", "ROUGE-L"]
    assert cells(table) == [
        ["baseline", "41.00", "18.00", "37.00"],
        ["SRC-ELMO+SHDEMB", *(f"{value} [1 seed]" for value in ("45.00", "20.00", "40.00"))],
    ]
    assert table.notes[1] == rouge.signature(None, {}, rouge.INTERVAL)


def test_rouge_at_several_sizes_has_the_layout_of_table_1_for_each_of_the_three(maker, compared) -> None:
    for size in (2500, 5000):
        maker.run(f"base-{size}", scores={"test": maker.rouge(size / 1e4, 0.1, 0.2)}, size=size)
    ((comparison,), _) = compared(maker.folder)
    tables = score_tables(comparison, Significance())
    assert [table.name for table in tables] == ["rouge-1", "rouge-2", "rouge-l"]
    assert cells(tables[0]) == [["baseline", "25.00", "50.00"]]


def test_what_is_missing_stands_in_the_cell(maker, compared) -> None:
    maker.run("a", bleu=10.0, seed=1)
    maker.run("b", bleu=12.0, seed=2)
    maker.run("c", bleu=99.0, seed=3, losses=(float("nan"),))
    maker.run("d", "src_ft", seed=1)
    ((comparison,), _) = compared(maker.folder)
    (table,) = score_tables(comparison, Significance())
    assert cells(table)[0][1] == "11.00 [2 of 3 runs, left out: NaN loss]"
    assert cells(table)[1][1] == " [not scored]"
    assert all(cell.bad for row in table.rows for cell in row[1:])
    assert "99" not in to_markdown(table)
    assert "| SRC-FT | not scored | not scored |" in to_markdown(table)


def test_the_published_figure_stands_beside_ours_where_there_is_one(maker, compared) -> None:
    for strategy, value in (("baseline", 21.0), ("src_elmo_shdemb", 28.5)):
        scores = {"newstest2018": maker.bleu(value, "newstest2018", sentences=2998)}
        maker.run(strategy, strategy, scores=scores, size=160000)
        maker.run(f"{strategy}-odd", strategy, scores=scores, size=200000)
    ((comparison,), _) = compared(maker.folder)
    table = score_tables(comparison, Significance())[0]
    assert cells(table) == [
        ["baseline", "21.00 [paper 21.4]", "21.00"],
        ["SRC-ELMO+SHDEMB", "28.50 [paper 29.0]", "28.50"],
    ]
    assert any("Edunov" in note for note in table.notes)
    first = next(csv.DictReader(io.StringIO(to_csv(table))))
    assert first["published"] == "21.4"


def test_several_test_sets_have_files_of_different_names(maker, compared) -> None:
    maker.run("a", scores={"test": maker.bleu(1.0), "second": maker.bleu(2.0, "second", "x")})
    comparisons, _ = compared(maker.folder)
    names = [score_tables(comparison, Significance())[0].name for comparison in comparisons]
    assert names == ["test-en-de-scores", "second-en-de-scores"]


@pytest.mark.parametrize(
    ("size", "name"),
    [(160000, "160K"), (5186000, "5186K"), (2500, "2.5K"), (400, "400"), (18231, "18,231"), (None, "unknown size")],
)
def test_sizes_as_the_paper_writes_them(size: int | None, name: str) -> None:
    assert size_name(size) == name


def test_markdown_and_csv_of_a_plain_table() -> None:
    table = Table("t", "Title", ["", "a|b"], [[Cell("x"), Cell("1", "note", best=True)]], ["A note."])
    assert to_markdown(table) == "### Title\n\n|  | a\\|b |\n|---|---:|\n| x | **1** (note) |\n\nA note.\n"
    assert to_csv(table) == ",a|b\nx,1 (note)\n"
