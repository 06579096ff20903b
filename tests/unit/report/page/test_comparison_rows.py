"""Which runs are seeds of one row, what a row is called, and which is the baseline."""

from __future__ import annotations

import pytest

from lmfusion.report.page.notices import NOTE


def test_runs_of_one_size_with_other_flags_are_rows_of_their_own_not_seeds(maker, compared, texts) -> None:
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
    with maker.record(path) as record:
        record["steps"]["train"]["data_sha256"]["train.en-de.de.bin"] = "f" * 64
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
    maker, compared, texts
) -> None:
    for seed in (1, 2):
        path = maker.run(f"elmo-{seed}", "src_elmo", bleu=1.0, seed=seed)
        with maker.record(path) as record:
            if seed == 1:
                lm = {"side": "source", "fusion": "elmo", "fingerprint": "1" * 20}
                record["model"] = {"language_models": [lm]}
            else:
                record["steps"]["train"]["state"] = "started"
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


@pytest.mark.parametrize(("row", "name"), [("baseline", "baseline"), ("lstm", "LSTM")])
def test_a_plain_model_with_its_own_bpe_is_what_others_are_compared_with(maker, compared, texts, row, name) -> None:
    maker.run("elmo", "src_elmo", bleu=12.0)
    maker.dictionary = "of the bitext"
    maker.run("own", row, bleu=9.0)
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.baseline.name == f"{name}+bitext-BPE"
    (elmo,) = [each for each in comparison.rows if each.strategy == "SRC-ELMO"]
    assert comparison.difference(elmo, comparison.sizes[0], "BLEU") == pytest.approx((3.0, 0.0))
    assert bool(texts(notices, NOTE)) == (row == "lstm")


def test_a_row_may_be_chosen_by_hand(maker, compared) -> None:
    path = maker.run("a", bleu=10.0)
    other = maker.run("b", bleu=20.0)
    ((comparison,), _) = compared(f"pivot system={path}", other)
    assert [row.name for row in comparison.rows] == ["baseline", "pivot system"]


def test_flags_in_a_configuration_file_are_not_taken_for_a_baseline(maker, compared, texts) -> None:
    path = maker.run("hydra-run", bleu=10.0)
    with maker.record(path) as record:
        record["steps"]["train"]["command"] = "fairseq-hydra-train --config-dir conf --config-name base".split()
    ((comparison,), notices) = compared(path)
    assert [row.name for row in comparison.rows] == ["hydra-run"]
    assert "Name its row: ROW=" in texts(notices, NOTE)[0]


def test_without_a_baseline_it_is_said(maker, compared, texts) -> None:
    maker.run("a", "src_ft", bleu=10.0)
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.baseline is None
    assert "no baseline among the runs" in texts(notices, NOTE)[0]


def test_with_several_baselines_the_first_is_named(maker, compared, texts) -> None:
    maker.run("a", bleu=10.0, flags="--dropout 0.1")
    maker.run("b", bleu=11.0, flags="--dropout 0.3")
    ((comparison,), notices) = compared(maker.folder)
    assert comparison.baseline is comparison.rows[0]
    assert "2 rows are baselines; differences and ratios are to the first, baseline (dropout 0.1)." in " ".join(
        texts(notices, NOTE)
    )
