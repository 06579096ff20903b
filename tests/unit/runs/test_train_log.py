"""train_log.py on lines as fairseq writes them with --log-format json."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion.errors import InputError
from lmfusion.runs import train_log

PREFIX = "2030-01-31 12:00:00 | INFO | "


def inner(updates: int, loss: float = 5.0, wps: float = 100.0) -> str:
    values = {"loss": str(loss), "ppl": str(2**loss), "wps": str(wps), "num_updates": str(updates), "lr": "0.001"}
    return f"{PREFIX}train_inner | {json.dumps({'epoch': 1, **values})}\n"


def valid(updates: int, loss: float) -> str:
    values = {"valid_loss": str(loss), "valid_ppl": str(2**loss), "valid_wps": "9", "valid_num_updates": str(updates)}
    return f"{PREFIX}valid | {json.dumps({'epoch': 1, **values})}\n"


def test_training_and_validation_are_read() -> None:
    log = train_log.read([inner(10), valid(10, 4.0), inner(20, 3.0, 300.0), valid(20, 2.0), "anything else\n"])
    assert log.updates == 20
    assert log.words_per_second == 200.0
    assert log.training[20].perplexity == 8.0
    assert log.best_validation == train_log.Progress(20, 2.0, 4.0)
    assert log.summary() == {
        "updates": 20,
        "tokens_per_second": 200.0,
        "best_valid_loss": 2.0,
        "best_valid_perplexity": 4.0,
        "best_valid_updates": 20,
    }


@pytest.mark.parametrize("lost", [float("nan"), float("inf")])
def test_a_loss_that_is_no_number_is_never_the_best_and_is_told(lost: float) -> None:
    log = train_log.read([inner(10), valid(10, lost), inner(20, lost), valid(20, 3.0), valid(30, 4.0)])
    assert log.summary()["best_valid_updates"] == 20
    assert log.without_loss() == [("validation", 10), ("training", 20)]
    assert train_log.read([valid(10, lost)]).summary()["best_valid_loss"] is None
    assert train_log.read([inner(10), valid(10, 1.0)]).without_loss() == []


def test_validation_bleu_is_read_where_it_was_computed() -> None:
    with_bleu = valid(10, 2.0).replace('"valid_ppl"', '"valid_bleu": "21.37", "valid_ppl"')
    log = train_log.read([with_bleu, valid(20, 2.0)])
    assert [log.validation[update].bleu for update in (10, 20)] == [21.37, None]


def test_what_a_resumed_run_did_again_counts_once() -> None:
    log = train_log.read([inner(10), inner(20), inner(30), valid(30, 3.0), inner(20, 4.5), inner(30, 4.0)])
    assert sorted(log.training) == [10, 20, 30]
    assert log.training[30].loss == 4.0


def test_a_log_without_anything_is_empty_and_not_an_error() -> None:
    log = train_log.read(["", f"{PREFIX}train_inner | {{cut off", f"{PREFIX}valid | {{}}"])
    assert log.updates == 0
    assert log.summary()["best_valid_perplexity"] is None


def test_the_first_interval_has_no_speed_yet() -> None:
    line = inner(10).replace('"wps": "100.0", ', "")
    assert train_log.read([line]).words_per_second == 0.0


def test_one_fast_interval_makes_no_fast_training() -> None:
    log = train_log.read([inner(10, wps=1.0), inner(20, wps=9.0), inner(30, wps=2.0)])
    assert log.words_per_second == 2.0


def test_a_missing_log_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train\.log: no such log"):
        train_log.read_file(tmp_path / "train.log")
