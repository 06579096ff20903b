"""Speed, all runs, language models, and what it takes to repeat them."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from lmfusion.report.page.find import Found
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.read_run import read_run
from lmfusion.report.page.repeat import commands, repeat_tables
from lmfusion.report.page.run_tables import lm_table, run_table
from lmfusion.report.page.speed_table import speed_tables
from lmfusion.report.page.table import Table, to_csv
from lmfusion.runs import train_log


def cells(table: Table) -> list[list[str]]:
    """The texts, notes in brackets."""
    return [[f"{cell.text} [{cell.note}]" if cell.note else cell.text for cell in row] for row in table.rows]


def read(path):
    return read_run(Found(path, path.name), Notices())


@pytest.mark.parametrize(
    ("test_set", "sentences", "training", "generation", "ratio"),
    [("newstest2018", 2998, " [paper 0.19]", " [paper 0.86]", "0.1903"), ("newstest2018", 300, "", "", "")],
)
def test_speed_has_the_layout_of_table_5_with_ratios_to_the_baseline(
    maker, compared, test_set: str, sentences: int, training: str, generation: str, ratio: str
) -> None:
    scores = {test_set: maker.bleu(1.0, test_set, sentences=sentences)}
    for seed, speed in ((1, 4000.0), (2, 5000.0)):
        maker.run(f"base-{seed}", scores=scores, seed=seed, speeds=(speed, 1000.0))
    maker.run("elmo", "src_elmo", scores=scores, speeds=(900.0, 850.0))
    ((comparison,), _) = compared(maker.folder)
    (table,) = speed_tables(comparison)
    assert list(table.columns) == ["", "training, tokens/s", "× baseline", "generation, tokens/s", "× baseline"]
    # 4000 and 5000: mean 4500, deviation 500 sqrt(2); 900 / 4500; the paper: 100,636 / 528,802 and 2,011 / 2,334
    assert cells(table) == [
        ["baseline", "4,500 ± 707", "1.00", "1,000 ± 0", "1.00"],
        ["SRC-ELMO", "900", f"0.20{training}", "850", f"0.85{generation}"],
    ]
    assert table.notes[0].startswith("2 CPU cores, x86_64, Linux.")
    assert f"SRC-ELMO,train,900.0,,1,0.2,{ratio}\n" in to_csv(table)


def test_speeds_of_different_machines_are_not_compared(maker, compared) -> None:
    maker.run("base", bleu=1.0, speeds=(4000.0, 1000.0))
    gpu = {"system": "Linux", "processor": "x86_64", "cores": 16, "gpu": "H200"}
    maker.run("elmo", "src_elmo", bleu=1.0, speeds=(90000.0, 5000.0), machine=gpu)
    ((comparison,), _) = compared(maker.folder)
    cpu_table, gpu_table = speed_tables(comparison)
    assert cells(cpu_table) == [["baseline", "4,000", "1.00", "1,000", "1.00"]]
    assert cells(gpu_table) == [["SRC-ELMO", "90,000", "", "5,000", ""]]
    assert gpu_table.notes[0].startswith("H200, 16 CPU cores")
    assert cpu_table.name != gpu_table.name


def test_speeds_of_different_numbers_of_processes_are_not_compared(maker, compared) -> None:
    for name, strategy, processes in (("base", "baseline", {"nproc_per_node": "8"}), ("elmo", "src_elmo", {})):
        path = maker.run(name, strategy, bleu=1.0)
        record = json.loads((path / "run.json").read_text())
        environment = {"OMP_NUM_THREADS": "1", "PYTHONHASHSEED": name}
        launch = {"processes": processes, "precision": ["fp16"], "environment": environment}
        record["steps"]["train"]["launch"] = launch
        (path / "run.json").write_text(json.dumps(record))
    ((comparison,), _) = compared(maker.folder)
    eight, one = speed_tables(comparison)
    assert [row[0] for row in cells(eight)] == ["baseline"]
    assert "training started with fp16, nproc_per_node 8, OMP_NUM_THREADS=1." in eight.notes[0]
    assert "training started with fp16, OMP_NUM_THREADS=1." in one.notes[0]


def test_every_run_has_a_line_whatever_became_of_it(maker, compared) -> None:
    maker.run("fine", bleu=12.0, seed=4, model={"trainable": 5_400_000, "frozen": 4_800_000})
    lost = maker.run("lost", "src_ft", bleu=1.0, losses=(8.0, float("nan")))
    failed = maker.run("failed", "tgt_ft")
    record = json.loads((failed / "run.json").read_text())
    record["steps"]["train"].update(state="failed", reason="    FloatingPointError: gradients are Nan/Inf\n    more")
    (failed / "run.json").write_text(json.dumps(record))
    started = maker.run("started", "tgt_elmo")
    (started / "run.json").write_text((started / "run.json").read_text().replace("finished", "started"))
    unscored = maker.run("unscored", "tgt_elmo", seed=2)
    broken = maker.run("broken")
    (broken / "run.json").write_text("{")
    comparisons, _ = compared(maker.folder)
    runs = [read(path) for path in sorted(maker.made)]
    table = run_table(runs, comparisons)
    assert [row[0].text for row in table.rows] == ["broken", "failed", "fine", "lost", "started", unscored.name]
    states = {row[0].text: row[4] for row in table.rows}
    assert states["broken"].text == "cannot be read"
    assert "is not JSON" in states["broken"].note
    assert (states["failed"].text, states["failed"].note) == (
        *("training failed", "FloatingPointError: gradients are Nan/Inf"),
    )
    assert (states["fine"].text, states["fine"].bad) == ("finished", False)
    assert states["lost"].text == "NaN loss"
    assert states["started"].text == "training unfinished"
    assert states["started"].note == "begun 2030-01-31T12:00:00Z, 30 updates so far"
    assert (states["unscored"].text, states["unscored"].note) == ("not scored", "")
    assert all(states[name].bad for name in ("broken", "failed", "lost", "started"))
    fine = cells(table)[2]
    assert fine[:6] == ["fine", "baseline", "2.5K [2,499 kept]", "4", "finished", "BLEU 12.00, chrF 32.00"]
    assert fine[6:] == ["32.00", "30", "1:01", "5.4 + 4.8"]
    assert "1.00" in cells(table)[3][5], "what it scored is told, but counts in no mean"
    assert lost.name in [run.name for run, _ in comparisons[0].rows[1].cell(2500).left_out]


def test_the_legend_tells_what_kept_is_only_where_a_cell_has_it(maker) -> None:
    whole, filtered = (read(maker.run(name, bleu=1.0)) for name in ("whole", "filtered"))
    assert (whole.pairs, whole.loaded_pairs) == (2500, 2499)
    whole = replace(whole, loaded_pairs=2500)
    assert not any("kept" in note for note in run_table([whole], []).notes)
    assert any("kept:" in note for note in run_table([whole, filtered], []).notes)


def test_language_models_have_a_table_of_their_own(maker, compared) -> None:
    path = maker.run("lm.en", "--arch bi_transformer_lm", generate=False, losses=(8.0, 5.0))
    (path / "run.json").write_text((path / "run.json").read_text().replace('"translation"', '"language_modeling"'))
    runs = [read(path), read(maker.run("base", bleu=1.0))]
    assert cells(lm_table(runs)) == [
        ["lm.en", "bi_transformer_lm", "finished", "32.00", "30", "1:01", "1,000", ""],
    ]
    assert "lowest validation loss" in lm_table(runs).notes[0]
    assert len(run_table(runs, []).rows) == 1


def test_signatures_versions_data_and_commands_are_told_once_for_all_runs_that_share_them(maker, compared) -> None:
    first, second = maker.run("a", bleu=1.0), maker.run("b", "src_ft", bleu=2.0, git_commit="beef+changes")
    comparisons, _ = compared(maker.folder)
    runs = [read(first), read(second)]
    signatures, environments, data = repeat_tables(runs, comparisons)
    assert [row[2].text for row in signatures.rows][:2] == [
        *("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.6.0", "BLEU+case.mixed"),
    ]
    assert maker.bleu(1.0)["reference_sha256"] in [row[2].text for row in signatures.rows]
    assert [(row[0].text, row[1].text) for row in environments.rows] == [("a", "c0ffee"), ("b", "beef+changes")]
    assert environments.rows[0][2].text == "python 3.11.7, sacrebleu 2.6.0"
    assert environments.notes
    assert {row[2].text for row in data.rows} == {"a, b"}
    assert {row[0].text for row in data.rows} >= {"train.en-de.de.bin", "dict.en.txt"}
    told = commands(runs)
    assert [(each.run, each.remark, [step for step, _ in each.steps]) for each in told] == [
        *[("a", "seed 1", ["train", "generate"]), ("b", "seed 1", ["train", "generate"])],
    ]
    assert told[1].steps[0][1].startswith("fairseq-train data/bitext-2500 -s en -t de --task translation")


def test_commands_are_quoted_for_a_shell(maker) -> None:
    path = maker.run("a", bleu=1.0)
    record = json.loads((path / "run.json").read_text())
    record["steps"]["train"]["command"] += ["--adam-betas", "(0.9, 0.98)"]
    (path / "run.json").write_text(json.dumps(record))
    assert "--adam-betas '(0.9, 0.98)'" in commands([read(path)])[0].steps[0][1]


@pytest.mark.parametrize("field", ["versions", "machine", "git_commit"])
def test_what_an_older_run_did_not_record_is_called_unknown(maker, compared, field: str) -> None:
    path = maker.run("a", bleu=1.0, **{field: None})
    comparisons, _ = compared(path)
    assert repeat_tables([read(path)], comparisons)[1].rows
    assert speed_tables(comparisons[0])


def test_the_validation_perplexity_is_said_to_be_that_of_the_lowest_loss(maker) -> None:
    path = maker.run("a", bleu=1.0, losses=(6.0, 5.0))
    with (path / "train.log").open("a", encoding="utf-8") as log:
        values = {"valid_loss": "5.5", "valid_ppl": "7.0", "valid_num_updates": "30"}
        log.write(f"2030-01-31 12:00:00 | INFO | valid | {json.dumps(values)}\n")
    found = train_log.read_file(path / "train.log").summary()
    assert (found["best_valid_loss"], found["best_valid_perplexity"]) == (5.0, 32.0), "a lower perplexity comes later"
    note = run_table([read(path)], []).notes[0]
    assert "lowest validation loss" in note
    assert "lowest validation perplexity" not in note
