"""Input that cannot work: one line that names it and the fix, nothing begun."""

from __future__ import annotations

from typing import Any

import pytest

ROW = "wmt18_ende/src_elmo"


@pytest.mark.parametrize(
    ("script", "words", "said"),
    [
        (ROW, ["--bitext", "100K"], "--bitext 100K: give 160K, 320K, 640K, 1280K, 2560K or 5186K. See --help."),
        (ROW, ["--gpus", "0"], "--gpus 0: give a number of GPUs, 1 or more. See --help."),
        (ROW, ["--gpus", "many"], "--gpus many: give a number of GPUs, 1 or more. See --help."),
        (ROW, ["--gpus"], "--gpus needs a value. See --help."),
        (ROW, ["--gpus", "--dry-run"], "--gpus needs a value. See --help."),
        (ROW, ["--seed", "x"], "--seed x: give a whole number. See --help."),
        (ROW, ["--scale", "huge"], "--scale huge: give paper or tiny. See --help."),
        (ROW, ["--updates", "9"], "--updates: recipes/wmt18_ende/src_elmo.sh has no such option. See --help."),
        ("wmt18_entr/baseline", ["--bitext", "160K"], "--bitext: recipes/wmt18_entr/baseline.sh has no such option."),
        ("lm/en_cloze", ["--optimizer", "sgd"], "--optimizer sgd: give nag (the paper's) or adam. See --help."),
        ("cnn_dm/sweep", [], "sweep.sh : name a row of recipes/cnn_dm first, such as baseline"),
        ("cnn_dm/sweep", ["all"], "sweep.sh all: name a row of recipes/cnn_dm first, such as baseline"),
        ("cnn_dm/sweep", ["src_ft"], "sweep.sh src_ft: name a row of recipes/cnn_dm first, such as baseline"),
    ],
)
def test_options_that_cannot_be_meant(script: str, words: list[str], said: str, scripts: Any) -> None:
    assert scripts.refused(script, *words, HERE="8").startswith(said)


@pytest.mark.parametrize(
    ("words", "here", "said"),
    [
        ([], "0", "this machine has no GPU, which the paper's sizes need. See what would be run with --dry-run"),
        (["--gpus", "8"], "4", "--gpus 8: there are 4 on this machine. Leave --gpus out to use them all; for several"),
        (["--nodes", "2"], "4", "2 machines need a SLURM job: sbatch --nodes 2 recipes/slurm.sbatch recipes/wmt18"),
        (["--nodes", "3", "--gpus", "8"], "4", "--gpus 8 cannot be shared evenly by 3 machines. Give a multiple of 3."),
    ],
)
def test_gpus_that_are_not_there(words: list[str], here: str, said: str, scripts: Any) -> None:
    assert scripts.refused(ROW, "--runs", str(scripts.folder / "runs"), *words, HERE=here).startswith(said)


def test_an_unknown_batch_needs_its_updates(scripts: Any) -> None:
    assert "PAPER_GPUS=16: neither the paper's 8" in scripts.refused(ROW, "--dry-run", PAPER_GPUS="16")
    command = scripts.training(ROW, PAPER_GPUS="16", UPDATES="77")
    assert command[command.index("--max-update") + 1] == "77"


def test_a_missing_language_model_and_missing_data_name_the_command_that_makes_them(scripts: Any) -> None:
    data, runs = scripts.folder / "data", scripts.folder / "runs"
    words = ["--scale", "tiny", "--data", str(data), "--runs", str(runs)]
    said = scripts.refused(ROW, *words)
    lm = runs / "lm" / "en_cloze.pt"
    fix = "bash recipes/lm/en_cloze.sh --scale tiny. Or name another: SRC_LM=FILE"
    assert said == f"{lm}: no such file. Pretrain it: {fix}"
    said = scripts.refused("wmt18_ende/tgt_ft", *words, TGT_LM="mine.pt")
    assert said.startswith("mine.pt: no such file. Pretrain it: bash recipes/lm/de_causal.sh --scale tiny.")
    said = scripts.refused(ROW, *words, "--bitext", "640K", SRC_LM=__file__)
    made = f"bash data-prep/wmt18_ende.sh --out {data} --subsets 640K --scale tiny"
    assert said == f"{data}/wmt18_ende/bitext-640K: no such file. Make it: {made}"
    said = scripts.refused("lm/cnn_dm_cloze", *words)
    assert said == f"{data}/cnn_dm/lm.en: no such file. Make it: bash data-prep/cnn_dm.sh --out {data} --scale tiny"


def test_rows_of_a_folder_share_their_numbers_but_not_what_is_tuned_or_changes_no_result(scripts: Any) -> None:
    data, runs = scripts.folder / "data", scripts.folder / "runs"
    (data / "wmt18_entr" / "bitext-all").mkdir(parents=True)
    words = ["--scale", "tiny", "--data", str(data), "--runs", str(runs), "--train-only"]
    of_a_row = ({"S2S_DROPOUT": "0.1"}, {"ELMO_DROPOUT": "0.3"}, {"GPU_TOKENS": "300"}, {"NUM_WORKERS": "1"})
    for settings in ({}, *of_a_row):
        done = scripts.run("wmt18_entr/baseline", *words, **settings)
        assert done.returncode == 0, done.stderr
    said = scripts.refused("wmt18_entr/baseline", *words, UPDATES="9")
    assert "< UPDATES=6 > UPDATES=9" in said
    assert "Choose another --runs DIR, or delete it." in said


def test_a_sweep_trains_every_dropout_and_tests_the_one_of_the_lowest_loss(scripts: Any) -> None:
    """The stub takes the last for the lowest."""
    data, runs = scripts.folder / "data", scripts.folder / "runs"
    text = data / "wmt18_entr" / "text"
    text.mkdir(parents=True)
    (data / "wmt18_entr" / "bitext-all").mkdir()
    folder = runs / "wmt18_entr" / "seed-1"
    for dropout in ("0.1", "0.4"):
        checkpoints = folder / f"baseline.dropout-{dropout}.lm-0.5" / "checkpoints"
        checkpoints.mkdir(parents=True)
        (checkpoints / "checkpoint.best_loss_5.0000.pt").write_bytes(b"")
    words = ["baseline", "--scale", "tiny", "--data", str(data), "--runs", str(runs)]
    done = scripts.run("wmt18_entr/sweep", *words, DROPOUTS="0.1 0.4", LM_DROPOUTS="0.5")
    assert done.returncode == 0, done.stderr
    calls = (scripts.folder / "calls").read_text(encoding="utf-8").splitlines()
    trained = [call for call in calls if " train " in call]
    for dropout, call in zip(("0.1", "0.4", "0.4"), trained):
        assert f"{folder}/baseline.dropout-{dropout}.lm-0.5 train" in call
        assert f"--dropout {dropout} " in call
        assert call.endswith(f"DROPOUT={dropout} LM=0.5")
    generated = [call for call in calls if "fairseq-generate" in call]
    assert len(trained) == 3
    assert len(generated) == 2
    assert all("baseline.dropout-0.4.lm-0.5/checkpoints/checkpoint_average.pt" in call for call in generated)


def test_the_sweep_shows_its_commands(scripts: Any) -> None:
    done = scripts.run("cnn_dm/sweep", "baseline", "--dry-run")
    assert done.returncode == 0, done.stderr
    shown = done.stdout
    assert [f"--dropout {rate} " in shown for rate in ("0.1", "0.2", "0.3", "0.4")] == [True] * 4
    assert shown.count("fairseq-generate") == 1
