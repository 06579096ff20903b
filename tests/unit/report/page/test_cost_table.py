"""Scores beside parameters, training time and speed of decoding."""

from __future__ import annotations

import csv
import io
import json

from lmfusion.report.page.cost_table import cost_table
from lmfusion.report.page.score_tables import score_tables
from lmfusion.report.page.significance import Significance
from lmfusion.report.page.table import to_csv, to_markdown

BASE = {"trainable": 5_422_080, "frozen": 0}
WITH_LM = {"trainable": 4_727_816, "frozen": 4_776_000}


def change(path, **steps) -> None:
    """Change the records of steps."""
    record = json.loads((path / "run.json").read_text(encoding="utf-8"))
    for name, values in steps.items():
        record["steps"][name].update(values)
    (path / "run.json").write_text(json.dumps(record), encoding="utf-8")


def table_of(compared, maker):
    ((comparison,), _) = compared(maker.folder)
    return cost_table(comparison, score_tables(comparison, Significance())[0])


def test_a_row_has_the_means_of_its_seeds_beside_its_scores(maker, compared) -> None:
    for seed, (bleu, seconds, speed) in enumerate([(9.0, 3600, 1000.0), (11.0, 3720, 1100.0)], start=1):
        path = maker.run(f"base-{seed}", bleu=bleu, seed=seed, speeds=(1.0, speed), model=BASE)
        change(path, train={"seconds": seconds})
    maker.run("elmo", "src_elmo", bleu=12.0, speeds=(1.0, 2345.6), model=WITH_LM)
    table = table_of(compared, maker)
    assert list(table.columns) == ["", "BLEU", "chrF", "parameters, M", "training", "decoding, tokens/s"]
    # (3600 + 3720) / 2 s is an hour and a minute; (1000 + 1100) / 2
    assert [cell.text for cell in table.rows[0][3:]] == ["5.4", "1:01:00", "1,050"]
    assert [cell.text for cell in table.rows[1][3:]] == ["4.7 + 4.8", "1:01", "2,346"]
    assert [cell.text for cell in table.rows[1][1:3]] == ["12.00", "32.00"]
    assert "Measured on 2 CPU cores, x86_64, Linux." in table.notes[-1]
    base, elmo = csv.DictReader(io.StringIO(to_csv(table)))
    assert (float(base["seconds of training"]), float(elmo["tokens/s of decoding"])) == (3660, 2345.6)


def test_what_a_run_did_not_record_is_a_dash(maker, compared) -> None:
    maker.run("base", bleu=9.0)
    old = maker.run("old", "src_elmo", bleu=10.0)
    change(old, generate={"result": {"sentences": 3}})
    markdown = to_markdown(table_of(compared, maker))
    assert "| baseline | 9.00 | 29.00 | — | 1:01 | 100 |" in markdown
    assert "| SRC-ELMO | 10.00 | 30.00 | — | 1:01 | — |" in markdown


def test_times_of_other_machines_have_a_letter(maker, compared) -> None:
    gpu = {"system": "Linux", "processor": "x86_64", "cores": 16, "gpu": "H200"}
    maker.run("a-elmo", "src_elmo", bleu=10.0, machine=gpu, model=WITH_LM)
    maker.run("base", bleu=9.0, model=BASE)
    table = table_of(compared, maker)
    assert [[cell.note for cell in row[3:]] for row in table.rows] == [["", "", ""], ["", "a", "a"]]
    assert "a: H200, 16 CPU cores" in table.notes[-1]


def test_several_sizes_have_no_such_table(maker, compared) -> None:
    for size in (2500, 5000):
        maker.run(f"base-{size}", bleu=9.0, size=size)
    assert table_of(compared, maker) is None
