"""Runs into rows, bitext sizes and seeds; what counts in no mean."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from lmfusion.report.page.notices import NOTE, WARNING, Notices


def texts(notices: Notices, kind: str) -> list[str]:
    return [notice.text for notice in notices.of_kind(kind)]


def change(path: Path, **parts: Any) -> None:
    """Rewrite parts of a run.json."""
    record = json.loads((path / "run.json").read_text())
    record.update(parts)
    (path / "run.json").write_text(json.dumps(record))


def stop(path: Path, state: str) -> None:
    """Make a run one whose training did not finish."""
    record = json.loads((path / "run.json").read_text())
    train = {**record["steps"]["train"], "state": state}
    train.pop("result")
    change(path, steps={"train": train}, state=state)
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


def test_failed_unfinished_and_unscored_runs_stand_in_their_cell_and_count_in_no_mean(maker, compared) -> None:
    maker.run("base", bleu=10.0)
    maker.run("one", "src_ft", bleu=20.0, seed=1)
    stop(maker.run("two", "src_ft", bleu=99.0, seed=2), "failed")
    stop(maker.run("three", "src_ft", bleu=99.0, seed=3), "started")
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
    record = json.loads((path / "run.json").read_text())
    record["steps"]["generate"]["state"] = "started"
    change(path, **record)
    ((comparison,), _) = compared(maker.folder)
    assert comparison.rows[1].cell(2500).left_out[0][1] == "generation unfinished"
    assert comparison.figures(comparison.rows[1].runs[0]) == {}


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_run_whose_loss_was_no_number_is_never_averaged(maker, compared, value: float) -> None:
    maker.run("base-1", bleu=10.0, seed=1)
    maker.run("base-2", bleu=30.0, seed=2, losses=(8.0, value, value))
    ((comparison,), notices) = compared(maker.folder)
    cell = comparison.rows[0].cell(2500)
    assert comparison.values(cell, "BLEU") == [10.0]
    ((run, reason),) = cell.left_out
    assert run.name == "base-2"
    assert reason == "NaN or infinite training and validation loss at update 20 and later, 4 logged losses in all"
    assert reason in texts(notices, WARNING)[0]


def test_a_seed_twice_counts_once(maker, compared) -> None:
    maker.run("a", bleu=10.0, seed=7)
    maker.run("b", bleu=20.0, seed=7)
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.values(comparison.rows[0].cell(2500), "BLEU") == [10.0]
    assert texts(notices, WARNING) == ["baseline: b left out of every mean: the same seed (7) and flags as a."]


def test_runs_of_one_size_with_other_flags_are_rows_of_their_own_not_seeds(maker, compared) -> None:
    maker.run("a", "src_ft", bleu=10.0, seed=1, flags="--dropout 0.1")
    maker.run("b", "src_ft", bleu=20.0, seed=2, flags="--dropout 0.3")
    maker.run("c", "src_ft", bleu=30.0, seed=3, flags="--dropout 0.3")
    maker.run("base", bleu=1.0)
    ((comparison,), notices) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["baseline", "SRC-FT (dropout 0.1)", "SRC-FT (dropout 0.3)"]
    assert [len(row.runs) for row in comparison.rows] == [1, 1, 2]
    assert all(row.strategy == "SRC-FT" for row in comparison.rows[1:])
    assert "SRC-FT: runs of one bitext size differ in dropout" in texts(notices, NOTE)[0]


def test_between_sizes_flags_may_differ(maker, compared) -> None:
    maker.run("a", bleu=10.0, size=100, flags="--max-update 10")
    maker.run("b", bleu=20.0, size=200, flags="--max-update 20")
    ((comparison,), _) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["baseline"]


def test_runs_with_different_training_data_or_language_models_are_rows_of_their_own(maker, compared) -> None:
    path = maker.run("a", bleu=10.0, seed=1)
    maker.run("b", bleu=20.0, seed=2)
    record = json.loads((path / "run.json").read_text())
    record["steps"]["train"]["data_sha256"]["train.en-de.de.bin"] = "f" * 64
    change(path, **record)
    for seed in (1, 2):
        lm = {"side": "source", "fusion": "elmo", "fingerprint": f"{seed}" * 20}
        maker.run(f"elmo-{seed}", "src_elmo", bleu=1.0, seed=seed, model={"language_models": [lm]})
    ((comparison,), _) = compared(maker.folder)
    assert [len(row.runs) for row in comparison.rows] == [1, 1, 1, 1]
    assert any(row.name == "baseline (training data ffffffffffff)" for row in comparison.rows)
    assert any(row.name == "SRC-ELMO (src-lm 111111111111)" for row in comparison.rows)


def test_language_models_of_rows_are_called_by_kind_then_by_file_then_by_fingerprint(maker, compared) -> None:
    """Two of a kind are told apart by their files' names, and those whose files have one name by fingerprints."""
    lms = {"1": ("BERT", "bert.pt"), "2": ("vectors", "cbow.vec"), "3": ("vectors", "skipgram.vec")}
    lms |= {"4": ("cloze", "a/checkpoint_best.pt"), "5": ("cloze", "b/checkpoint_best.pt")}
    for digit, (kind, file) in lms.items():
        lm = {"side": "source", "fusion": "elmo", "kind": kind, "fingerprint": digit * 20}
        flags = f"--src-lm {file}"
        maker.run(f"elmo-{digit}", "src_elmo", bleu=1.0, seed=1, flags=flags, model={"language_models": [lm]})
    ((comparison,), _) = compared(maker.folder)
    called = {row.name.removeprefix("SRC-ELMO (src-lm ").removesuffix(")") for row in comparison.rows}
    assert called == {"BERT", "vectors cbow.vec", "vectors skipgram.vec", f"cloze {'4' * 12}", f"cloze {'5' * 12}"}


def test_a_run_that_still_trains_is_a_seed_of_its_row_though_its_language_model_is_known_by_name_only(
    maker, compared
) -> None:
    for seed in (1, 2):
        path = maker.run(f"elmo-{seed}", "src_elmo", bleu=1.0, seed=seed)
        done = {"language_models": [{"side": "source", "fusion": "elmo", "fingerprint": "1" * 20}]}
        record = json.loads((path / "run.json").read_text())
        if seed == 2:
            record["steps"]["train"]["state"] = "started"
        change(path, **record, **({"model": done} if seed == 1 else {}))
    ((comparison,), notices) = compared(maker.folder)
    assert [(row.name, len(row.runs)) for row in comparison.rows] == [("SRC-ELMO", 2)]
    assert not [text for text in texts(notices, NOTE) if "differ in" in text]


def test_a_plain_model_with_another_bpe_than_the_language_models_has_the_papers_name_for_it(maker, compared) -> None:
    maker.run("shared", "shared", bleu=10.0)
    maker.run("elmo", "src_elmo", bleu=12.0)
    maker.dictionary = "of the bitext"
    maker.run("own", "shared", bleu=9.0)
    ((comparison,), _) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["SHARED", "SHARED+bitext-BPE", "SRC-ELMO"]


def test_different_reference_texts_are_different_tables_and_it_is_said(maker, compared) -> None:
    maker.run("a", bleu=10.0)
    maker.run("b", "src_ft", scores={"test": maker.bleu(20.0, reference="another text")})
    comparisons, notices = compared(maker.folder)
    assert [[run.name for run in comparison.runs] for comparison in comparisons] == [["a"], ["b"]]
    assert len({comparison.slug for comparison in comparisons}) == 2
    (warning,) = texts(notices, WARNING)
    assert warning.startswith("different test sets are called 'test (en-de)' (a: reference ")
    assert "not compared" in warning


def test_scores_computed_in_different_ways_are_different_tables_and_it_is_said(maker, compared) -> None:
    maker.run("a", bleu=10.0)
    maker.run("b", "src_ft", scores={"test": {**maker.bleu(20.0), "signature": "BLEU|tok:none"}})
    comparisons, notices = compared(maker.folder)
    assert len(comparisons) == 2
    (warning,) = texts(notices, WARNING)
    assert "computed in different ways" in warning
    assert "b: BLEU|tok:none" in warning


def test_other_languages_and_test_sets_are_tables_of_their_own_without_a_warning(maker, compared) -> None:
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


def test_what_learns_nothing_stands_at_every_size(maker, compared) -> None:
    maker.pair = ("description", "synopsis")
    path = maker.run("lead", scores={"test": maker.rouge(0.4, 0.2, 0.3)})
    record = json.loads((path / "run.json").read_text())
    lead = {**record["steps"]["generate"], "command": "python data-prep/lead.py texts --sentences 1".split()}
    change(path, steps={"generate": lead})
    (path / "train.log").unlink()
    for size in (100, 200):
        maker.run(f"base-{size}", scores={"test": maker.rouge(0.3, 0.1, 0.2)}, size=size)
    ((comparison,), _) = compared(maker.folder)
    assert [row.name for row in comparison.rows] == ["Lead-1", "baseline"]
    assert comparison.sizes == [100, 200]
    assert [comparison.values(comparison.rows[0].cell(size), "ROUGE-1") for size in (100, 200)] == [[40.0], [40.0]]


def test_a_row_may_be_chosen_by_hand(maker, compared) -> None:
    path = maker.run("a", bleu=10.0)
    other = maker.run("b", bleu=20.0)
    ((comparison,), _) = compared(f"pivot system={path}", other)
    assert [row.name for row in comparison.rows] == ["baseline", "pivot system"]


def test_flags_in_a_configuration_file_are_not_taken_for_a_baseline(maker, compared) -> None:
    path = maker.run("hydra-run", bleu=10.0)
    record = json.loads((path / "run.json").read_text())
    record["steps"]["train"]["command"] = "fairseq-hydra-train --config-dir conf --config-name base".split()
    change(path, **record)
    ((comparison,), notices) = compared(path)
    assert [row.name for row in comparison.rows] == ["hydra-run"]
    assert "Name its row: ROW=" in texts(notices, NOTE)[0]


def test_without_a_baseline_it_is_said(maker, compared) -> None:
    maker.run("a", "src_ft", bleu=10.0)
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.baseline is None
    assert "no baseline among the runs" in texts(notices, NOTE)[0]


def test_with_several_baselines_the_first_is_named(maker, compared) -> None:
    maker.run("a", bleu=10.0, flags="--dropout 0.1")
    maker.run("b", bleu=11.0, flags="--dropout 0.3")
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.baseline is comparison.rows[0]
    assert "2 rows are baselines; differences and ratios are to the first, baseline (dropout 0.1)." in " ".join(
        texts(notices, NOTE)
    )
