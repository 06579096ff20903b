"""Every recipe of the paper's experiments in small, from the prepared data to the score."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import lmfusion

RECIPES = Path(__file__).parents[3] / "recipes"
TABLE_4 = ["baseline", "shared", "shared_bitext_bpe", "src_elmo", "src_ft", "tgt_elmo", "tgt_ft", "src_elmo_shdemb"]
NEWSTESTS = [f"newstest{year}" for year in range(2012, 2019)]
LMS = ["en_cloze", "de_causal", "cnn_dm_cloze", "cnn_dm_causal"]

pytestmark = pytest.mark.slow


def printed(shown: str, who: str) -> dict[str, list[str]]:
    """The figures of the last table, by row: `who` is ours or paper."""
    rows = re.findall(rf"^  (\S+) +{who} +(.*)$", shown, re.M)
    return {name: figures.split() for name, figures in rows}


@pytest.fixture(scope="session")
def lms(laboratory: Any) -> dict[str, str]:
    """What pretraining the four language models printed; their files lie where the rows look for them."""
    return {name: laboratory.recipe(f"lm/{name}") for name in LMS}


@pytest.mark.parametrize("name", LMS)
def test_each_language_model_is_pretrained_and_written(name: str, laboratory: Any, lms: dict[str, str]) -> None:
    first = "2 GPUs × 400 tokens = 800 tokens an update; with one CPU process: --update-freq 2"
    assert lms[name].splitlines()[0] == first
    assert f"{name}: update 4, validation perplexity" in lms[name]
    lm = lmfusion.load_lm(str(laboratory.runs / "lm" / f"{name}.pt"))
    assert lm.sees_future == ("causal" not in name)


@pytest.mark.parametrize("name", LMS)
def test_each_language_model_is_pretrained_with_adam_beside_the_papers(name: str, laboratory: Any) -> None:
    shown = laboratory.recipe(f"lm/{name}", "--optimizer", "adam")
    assert f"{name}.adam: 4 updates" in shown
    command = laboratory.run_json(f"lm/{name}.adam")["steps"]["train"]["command"]
    assert command[command.index("--optimizer") + 1] == "adam"
    lmfusion.load_lm(str(laboratory.runs / "lm" / f"{name}.adam.pt"))


@pytest.fixture(scope="session")
def english_german(laboratory: Any, lms: dict[str, str]) -> str:
    """What all rows of Table 4 printed."""
    shown: str = laboratory.recipe("wmt18_ende/all", "--bitext", "160K")
    return shown


def test_every_row_of_english_german_is_scored_on_seven_newstests(laboratory: Any, english_german: str) -> None:
    assert re.findall(r"^== (\w+)$", english_german, re.M) == TABLE_4
    for row in TABLE_4:
        run = f"wmt18_ende/160K/seed-1/{row}"
        scores = laboratory.scores(run)
        assert sorted(scores) == NEWSTESTS
        assert all("tok:13a" in score["signature"] for score in scores.values())
        assert laboratory.run_json(run)["steps"]["train"]["result"]["updates"] == 6
        for number, name in enumerate(NEWSTESTS):
            assert len((laboratory.runs / run / f"{name}.hyp").read_text("utf-8").splitlines()) == 20 + number


def test_the_table_of_all_rows_has_ours_above_the_papers(laboratory: Any, english_german: str) -> None:
    last = english_german[english_german.rindex("newstest2012") :]
    ours, theirs = printed(last, "ours"), printed(last, "paper")
    assert list(ours) == list(theirs) == TABLE_4
    assert theirs["src_ft"] == ["15.30", "18.50", "16.60", "18.90", "20.80", "17.60", "24.30", "18.86"], "Table 4"
    for row, figures in ours.items():
        scores = laboratory.scores(f"wmt18_ende/160K/seed-1/{row}")
        assert figures[:7] == [f"{scores[name]['bleu']:.2f}" for name in NEWSTESTS]


@pytest.mark.usefixtures("english_german")
@pytest.mark.parametrize("row", ["src_elmo", "tgt_ft"])
def test_rows_use_the_lm_they_are_about(row: str, laboratory: Any) -> None:
    folder = laboratory.runs / f"wmt18_ende/160K/seed-1/{row}" / "checkpoints"
    model = lmfusion.load_model(str(folder)).models[0]
    side = model.encoder if row.startswith("src") else model.decoder
    trained = {name for name, weight in side.named_parameters() if weight.requires_grad and "lm." in name}
    assert bool(trained) == (row == "tgt_ft"), "frozen in ELMo mixes, trained when fine-tuned"
    assert (folder / "checkpoint_average.pt").is_file()


def test_the_baseline_with_a_bpe_of_the_bitexts_own_reads_that_bpe(laboratory: Any) -> None:
    laboratory.recipe("wmt18_ende/baseline_bitext_bpe", "--bitext", "160K")
    run = "wmt18_ende/160K/seed-1/baseline_bitext_bpe"
    assert sorted(laboratory.scores(run)) == NEWSTESTS
    command = laboratory.run_json(run)["steps"]["generate"]["command"]
    own = laboratory.data / "wmt18_ende" / "bitext-bpe-160K"
    assert command[1] == str(own)
    assert str(own / "spm.model") in command


@pytest.mark.usefixtures("lms")
def test_every_row_of_english_turkish_is_scored_on_both_newstests(laboratory: Any) -> None:
    shown = laboratory.recipe("wmt18_entr/all")
    last = shown[shown.rindex("newstest2017") :]
    assert printed(last, "paper") == {
        "baseline": ["9.80", "9.50", "9.65"],
        "src_elmo": ["12.00", "11.30", "11.65"],
        "src_elmo_shdemb": ["12.90", "11.80", "12.35"],
    }
    references = (laboratory.data / "wmt18_entr/text/test.tr").read_text("utf-8").splitlines()
    for row in printed(last, "ours"):
        run = laboratory.runs / "wmt18_entr/seed-1" / row
        hypotheses = (run / "newstest2018.hyp").read_text("utf-8")
        assert len(hypotheses.splitlines()) == len(references)
        assert "\u2581" not in hypotheses, "symbols were joined to words"


@pytest.mark.usefixtures("lms")
def test_every_row_of_cnn_dailymail_is_scored_sentence_by_sentence(laboratory: Any) -> None:
    shown = laboratory.recipe("cnn_dm/all")
    assert printed(shown, "paper") == {
        "lead3": ["40.34", "17.70", "36.57"],
        "baseline": ["40.07", "17.61", "36.78"],
        "src_elmo_shdemb": ["41.56", "18.94", "38.47"],
    }
    for row in printed(shown, "ours"):
        assert "¶" in laboratory.scores(f"cnn_dm/seed-1/{row}")["cnn_dm"]["signature"]
    runs = laboratory.runs / "cnn_dm/seed-1"
    log = (runs / "src_elmo_shdemb/generate.log").read_text("utf-8").splitlines()
    lengths = [len(line.split("\t")[2].split()) for line in log if line.startswith("H-")]
    assert 4 <= min(lengths) <= max(lengths) <= 12
    summaries = (runs / "lead3/cnn_dm.hyp").read_text("utf-8").splitlines()
    assert max(summary.count("¶") for summary in summaries) == 2


@pytest.mark.parametrize(
    ("folder", "own", "sets"), [("wmt18_ende", ["--bitext", "160K"], 7), ("wmt18_entr", [], 2), ("cnn_dm", [], 1)]
)
def test_the_dropout_with_the_lowest_validation_loss_is_tested(
    folder: str, own: list[str], sets: int, laboratory: Any
) -> None:
    laboratory.recipe(f"{folder}/sweep", "baseline", *own, DROPOUTS="0.1 0.4")
    place = f"{folder}/{'160K/' if own else ''}seed-1"
    losses, scored = {}, []
    for dropout in ("0.1", "0.4"):
        run = f"{place}/baseline.dropout-{dropout}"
        train = laboratory.run_json(run)["steps"]["train"]
        assert train["command"][train["command"].index("--dropout") + 1] == dropout
        losses[dropout] = train["result"]["best_valid_loss"]
        if (laboratory.runs / run / "scores.json").exists():
            assert len(laboratory.scores(run)) == sets
            scored.append(dropout)
    assert scored == [min(losses, key=lambda dropout: losses[dropout])]


def test_all_scripts_are_run_here() -> None:
    """A new recipe has to be added above."""
    scripts = {str(path.relative_to(RECIPES).with_suffix("")) for path in RECIPES.glob("*/[a-z]*.sh")}
    paper = {name for name in scripts if name.split("/")[0] in {"lm", "wmt18_ende", "wmt18_entr", "cnn_dm"}}
    rows = {"wmt18_ende": [*TABLE_4, "baseline_bitext_bpe"], "wmt18_entr": ["baseline", "src_elmo", "src_elmo_shdemb"]}
    rows["cnn_dm"] = ["lead3", "baseline", "src_elmo_shdemb"]
    here = {f"lm/{name}" for name in LMS}
    here |= {f"{folder}/{name}" for folder, names in rows.items() for name in [*names, "all", "sweep"]}
    assert paper == here


def test_a_pretraining_that_was_killed_goes_on_with_the_commands_as_installed(laboratory: Any, tmp_path: Path) -> None:
    """Nothing stands in for Python here; it is killed behind its second checkpoint."""
    words, longer = laboratory.row("lm/de_causal", runs=tmp_path), {"LM_UPDATES": "8"}
    laboratory.kill_when(words, "update 4, validation perplexity", **longer)
    done = laboratory.start(words, real=True, **longer)
    assert done.returncode == 0, done.stderr
    log = (tmp_path / "lm" / "de_causal" / "train.log").read_text("utf-8")
    begun, resumed = log.split("Loaded checkpoint", 1)
    assert "begin validation" in begun
    assert '"num_updates": "1"' not in resumed
    assert "de_causal: 8 updates" in done.stdout
    lmfusion.load_lm(str(tmp_path / "lm" / "de_causal.pt"))
    assert "de_causal: finished before" in laboratory.start(words, **longer).stdout
