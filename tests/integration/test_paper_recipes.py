"""The paper's experiments in small, from archives in their original formats to the score, with the real commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import lmfusion

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Laboratory:
    """Prepared data and language models, both tiny, and what runs scripts on them."""

    folder: Path

    def bash(self, script: str, *words: object) -> str:
        """Run a script with the tests' own Python; what it printed."""
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        own = {"PATH": path, "NO_SETUP": "1", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        command = ["bash", str(ROOT / script), "--scale", "tiny", *map(str, words)]
        done = subprocess.run(command, env={**os.environ, **own}, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done.stdout

    def recipe(self, script: str, *words: object) -> str:
        """Run a script of recipes/ on this data and these language models."""
        return self.bash(f"recipes/{script}.sh", *words, "--data", self.folder / "data", "--runs", self.runs)

    @property
    def runs(self) -> Path:
        """Where everything trained lies."""
        return self.folder / "runs"

    def scores(self, run: str) -> dict[str, dict[str, object]]:
        """A run folder's scores by test set."""
        scores: dict[str, dict[str, object]] = json.loads((self.runs / run / "scores.json").read_text("utf-8"))
        return scores


@pytest.fixture(scope="session")
def laboratory(tmp_path_factory: pytest.TempPathFactory, standin_sources: Path) -> Laboratory:
    """All corpora of the paper, prepared from stand-ins for their archives."""
    made = Laboratory(tmp_path_factory.mktemp("laboratory"))
    flags: dict[str, list[str]] = {"wmt18_ende": ["--subsets", "5186K", "--bitext-bpe"], "wmt18_entr": [], "cnn_dm": []}
    for corpus, own in flags.items():
        data = made.folder / "data"
        made.bash(f"data-prep/{corpus}.sh", "--sources", standin_sources, "--out", data, *own)
    return made


@pytest.fixture(scope="session")
def english_lm(laboratory: Laboratory) -> str:
    """What pretraining the English cloze LM printed; its file lies where the rows look for it."""
    return laboratory.recipe("lm/en_cloze")


def test_a_language_model_is_pretrained_written_and_not_trained_twice(laboratory: Laboratory, english_lm: str) -> None:
    assert english_lm.startswith("2 GPUs × 400 tokens = 800 tokens an update; with one CPU process: --update-freq 2")
    assert "en_cloze: update 4, validation perplexity" in english_lm
    lm = lmfusion.load_lm(str(laboratory.runs / "lm" / "en_cloze.pt"))
    assert not lm.is_causal
    again = laboratory.recipe("lm/en_cloze")
    assert "en_cloze: finished before" in again


@pytest.mark.usefixtures("english_lm")
def test_english_german_from_archives_to_bleu_on_seven_newstests(laboratory: Laboratory) -> None:
    shown = laboratory.recipe("wmt18_ende/src_elmo_shdemb", "--bitext", "5186K")
    run = "wmt18_ende/5186K/seed-1/src_elmo_shdemb"
    scores = laboratory.scores(run)
    assert sorted(scores) == [f"newstest{year}" for year in range(2012, 2019)]
    assert all("tok:13a" in str(score["signature"]) for score in scores.values())
    assert (laboratory.runs / run / "checkpoints" / "checkpoint_average.pt").is_file()
    paper = next(line for line in shown.splitlines() if " paper " in line).split()
    assert paper[2:] == ["23.40", "28.00", "28.80", "31.20", "34.50", "28.70", "41.80", "30.91"], "Table 4"
    train = json.loads((laboratory.runs / run / "run.json").read_text("utf-8"))["steps"]["train"]
    assert train["result"]["updates"] == 6


def test_a_german_lm_in_the_decoder_is_pretrained_and_fine_tuned(laboratory: Laboratory) -> None:
    laboratory.recipe("lm/de_causal")
    shown = laboratory.recipe("wmt18_ende/tgt_ft", "--bitext", "5186K", "--train-only")
    assert re.search(r"tgt_ft: 6 updates, .* best validation perplexity", shown)
    assert not (laboratory.runs / "wmt18_ende/5186K/seed-1/tgt_ft/scores.json").exists()


@pytest.mark.usefixtures("english_lm")
def test_english_turkish_reads_the_english_lm_and_writes_turkish(laboratory: Laboratory) -> None:
    shown = laboratory.recipe("wmt18_entr/src_elmo")
    run = laboratory.runs / "wmt18_entr" / "seed-1" / "src_elmo"
    assert sorted(laboratory.scores("wmt18_entr/seed-1/src_elmo")) == ["newstest2017", "newstest2018"]
    assert next(line for line in shown.splitlines() if " paper " in line).split()[2:] == ["12.00", "11.30", "11.65"]
    references = (laboratory.folder / "data/wmt18_entr/text/test.tr").read_text("utf-8").splitlines()
    assert len((run / "newstest2018.hyp").read_text("utf-8").splitlines()) == len(references)
    assert "\u2581" not in (run / "newstest2018.hyp").read_text("utf-8"), "symbols were joined to words"


def test_summaries_of_news_are_written_by_a_model_with_a_bpe_of_its_own(laboratory: Laboratory) -> None:
    laboratory.recipe("lm/cnn_dm_cloze")
    laboratory.recipe("cnn_dm/src_elmo_shdemb")
    score = laboratory.scores("cnn_dm/seed-1/src_elmo_shdemb")["cnn_dm"]
    assert "¶" in str(score["signature"])
    log = (laboratory.runs / "cnn_dm/seed-1/src_elmo_shdemb/generate.log").read_text("utf-8").splitlines()
    lengths = [len(line.split("\t")[2].split()) for line in log if line.startswith("H-")]
    assert 4 <= min(lengths) <= max(lengths) <= 12


def test_the_first_three_sentences_are_scored_sentence_by_sentence(laboratory: Laboratory) -> None:
    shown = laboratory.recipe("cnn_dm/lead3")
    assert "40.34" in next(line for line in shown.splitlines() if " paper " in line)
    summaries = (laboratory.runs / "cnn_dm/seed-1/lead3/cnn_dm.hyp").read_text("utf-8").splitlines()
    assert max(summary.count("¶") for summary in summaries) == 2
