"""Runs into rows, bitext sizes and seeds; what counts in no mean."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from lmfusion.report.page.notices import WARNING


def stop(maker, path: Path, state: str) -> None:
    """Make a run one whose training did not finish."""
    with maker.record(path) as record:
        train = {**record["steps"]["train"], "state": state}
        del train["result"]
        record.update(steps={"train": train}, state=state)
    (path / "scores.json").unlink()


def test_rows_are_strategies_in_the_papers_order_columns_sizes_cells_seeds(maker, compared) -> None:
    for seed, bleu in ((3, 12.0), (1, 10.0), (2, 14.0)):
        maker.run(f"elmo-{seed}", "src_elmo", bleu=bleu, seed=seed, size=5000)
    maker.run("ft", "tgt_ft", bleu=9.0, size=5000)
    maker.run("base-5000", bleu=11.0, size=5000)
    maker.run("base-640", bleu=1.0, size=640)
    ((comparison,), _) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["baseline", "SRC-ELMO", "TGT-FT"]
    assert comparison.sizes == [640, 5000]
    elmo = comparison.rows[1].cell(5000)
    assert [run.seed for run in elmo.used] == [1, 2, 3]
    assert comparison.values(elmo, "BLEU") == [10.0, 14.0, 12.0]
    assert comparison.values(elmo, "chrF") == [30.0, 34.0, 32.0]
    assert comparison.rows[1].cell(640).used == []
    assert comparison.focus == 5000, "the size with the most rows"
    assert comparison.metrics == ["BLEU", "chrF"]
    assert comparison.main_metrics == ["BLEU"]


def test_failed_unfinished_and_unscored_runs_stand_in_their_cell_and_count_in_no_mean(maker, compared, texts) -> None:
    maker.run("base", bleu=10.0)
    maker.run("one", "src_ft", bleu=20.0, seed=1)
    stop(maker, maker.run("two", "src_ft", bleu=99.0, seed=2), "failed")
    stop(maker, maker.run("three", "src_ft", bleu=99.0, seed=3), "started")
    maker.run("four", "src_ft", seed=4)
    ((comparison,), notices) = compared(maker.folder)
    cell = comparison.rows[1].cell(2500)
    assert comparison.values(cell, "BLEU") == [20.0]
    assert [(run.name, reason) for run, reason in cell.left_out] == [
        *[("two", "training failed"), ("three", "training unfinished"), ("four", "not scored")],
    ]
    assert texts(notices, WARNING) == [
        "SRC-FT: two left out of every mean: training failed.",
        "SRC-FT: three left out of every mean: training unfinished.",
        "SRC-FT: four left out of every mean: not scored.",
    ]


def test_the_score_of_a_run_that_goes_on_is_no_score(maker, compared) -> None:
    maker.run("base", bleu=10.0)
    path = maker.run("again", "src_ft", bleu=20.0)
    with maker.record(path) as record:
        record["steps"]["generate"]["state"] = "started"
    ((comparison,), _) = compared(maker.folder)
    assert comparison.rows[1].cell(2500).left_out[0][1] == "generation unfinished"
    assert comparison.figures(comparison.rows[1].runs[0]) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_run_whose_loss_was_no_number_is_never_averaged(maker, compared, texts, value: float) -> None:
    maker.run("base-1", bleu=10.0, seed=1)
    maker.run("base-2", bleu=30.0, seed=2, losses=(8.0, value, value))
    ((comparison,), notices) = compared(maker.folder)
    cell = comparison.rows[0].cell(2500)
    assert comparison.values(cell, "BLEU") == [10.0]
    ((run, reason),) = cell.left_out
    assert run.name == "base-2"
    assert reason == "NaN or infinite training and validation loss at update 20 and later, 4 logged losses in all"
    assert reason in texts(notices, WARNING)[0]


def test_a_seed_twice_counts_once(maker, compared, texts) -> None:
    maker.run("a", bleu=10.0, seed=7)
    maker.run("b", bleu=20.0, seed=7)
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.values(comparison.rows[0].cell(2500), "BLEU") == [10.0]
    assert texts(notices, WARNING) == ["baseline: b left out of every mean: the same seed (7) and flags as a."]


def test_what_learns_nothing_stands_at_every_size(maker, compared) -> None:
    maker.pair = ("description", "synopsis")
    path = maker.run("lead", scores={"test": maker.rouge(0.4, 0.2, 0.3)})
    with maker.record(path) as record:
        del record["steps"]["train"]
        record["steps"]["generate"]["command"] = "python data-prep/lead.py texts --sentences 1".split()
    (path / "train.log").unlink()
    for size in (100, 200):
        maker.run(f"base-{size}", scores={"test": maker.rouge(0.3, 0.1, 0.2)}, size=size)
    ((comparison,), _) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["Lead-1", "baseline"]
    assert comparison.sizes == [100, 200]
    assert [comparison.values(comparison.rows[0].cell(size), "ROUGE-1") for size in (100, 200)] == [[40.0], [40.0]]
