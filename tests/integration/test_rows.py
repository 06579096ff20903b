"""A row of each folder, really trained, generated and scored for a few updates on a slice of the embedded corpus."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from fairseq.data import Dictionary, data_utils

import lmfusion

ROOT = Path(__file__).parents[2]
TINY = {
    "BITEXT_LINES": "400",
    "MAX_RATIO": "0",
    "MAX_SOURCE": "40",
    "MAX_LEN": "12",
    "LM_DIM": "16",
    "LM_FFN": "16",
    "LM_LAYERS": "1",
    "LM_HEADS": "2",
    "LM_UPDATES": "4",
    "LM_VALIDATE_EVERY": "2",
    "S2S_DIM": "16",
    "S2S_FFN": "16",
    "S2S_LAYERS": "1",
    "S2S_HEADS": "2",
    "S2S_TOKENS": "1000",
    "S2S_UPDATES": "12",
    "S2S_VALIDATE_EVERY": "6",
    "BEAM": "2",
}


def run(script: str, corpus: Path, out: Path) -> str:
    """Run a recipe with the tests' own Python and few updates; what it printed."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    own = {"PATH": path, "NO_SETUP": "1", "CORPUS": str(corpus), "OUT": str(out), "OMP_NUM_THREADS": "1"}
    command = ["bash", ROOT / "recipes" / script]
    done = subprocess.run(command, env={**os.environ, **TINY, **own}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_translation_row_fine_tunes_the_shipped_lm_and_does_nothing_twice(small_corpus: Path, tmp_path: Path) -> None:
    run("debian_ende/src_ft.sh", small_corpus, tmp_path)
    row = tmp_path / "src_ft"
    assert "tok:13a" in json.loads((row / "scores.json").read_text())["test"]["signature"]
    assert len((row / "test.hyp").read_text(encoding="utf-8").splitlines()) == 25
    logs = [(row / name).read_text(encoding="utf-8") for name in ("train.log", "generate.log")]

    again = run("debian_ende/src_ft.sh", small_corpus, tmp_path)
    assert again.count("src_ft: finished before") == 2
    assert [(row / name).read_text(encoding="utf-8") for name in ("train.log", "generate.log")] == logs


@pytest.mark.slow
def test_a_synopsis_row_pretrains_its_causal_lm_cuts_descriptions_and_scores_rouge(
    small_corpus: Path, tmp_path: Path
) -> None:
    shown = run("debian_synopsis/tgt_elmo.sh", small_corpus, tmp_path)
    assert "causal.en: update 4, validation perplexity" in shown
    row = tmp_path / "tgt_elmo"
    score = json.loads((row / "scores.json").read_text())["test"]
    assert score["summaries"] == 25
    assert 0 <= score["rouge2"]["f1"]["mean"] <= score["rouge1"]["f1"]["mean"] < 1

    generated = (row / "generate.log").read_text(encoding="utf-8").splitlines()
    sources = {int(line[2:].split("\t")[0]): line.split("\t")[1] for line in generated if line.startswith("S-")}
    symbols = (tmp_path / "data" / "bpe" / "test.description").read_text(encoding="utf-8").splitlines()
    cut = [line.split()[: int(TINY["MAX_SOURCE"]) - 1] for line in symbols]  # </s> counts
    letters = ["".join(words).replace("\u2581", "") for words in cut]
    assert [sources[n].replace(" ", "") for n in range(25)] == letters
    assert any(len(words) < len(line.split()) for words, line in zip(cut, symbols))
    lengths = [len(line.split("\t")[2].split()) for line in generated if line.startswith("H-")]
    assert 3 <= min(lengths) <= max(lengths) <= int(TINY["MAX_LEN"])

    assert_raw_text_becomes_the_prepared_ids(tmp_path)
    lead = run("debian_synopsis/lead.sh", small_corpus, tmp_path)
    assert "lead: ROUGE-1/2/L" in lead


def assert_raw_text_becomes_the_prepared_ids(out: Path) -> None:
    """The trained model makes of raw descriptions what it was trained on: apostrophes, and the cut to a length."""
    model = lmfusion.load_model(out / "tgt_elmo" / "checkpoints")
    bitext = out / "data" / "bitext-400"
    dictionary = Dictionary.load(str(bitext / "dict.description.txt"))
    prepared = data_utils.load_indexed_dataset(str(bitext / "test.description-synopsis.description"), dictionary)
    texts = (out / "data" / "text" / "test.description").read_text(encoding="utf-8").splitlines()
    assert any("'s " in text for text in texts)
    last = int(TINY["MAX_SOURCE"]) - 1
    trained_on = [[*ids.tolist()[:-1][:last], dictionary.eos()] for ids in prepared]
    assert any(len(cut) < len(ids) for cut, ids in zip(trained_on, prepared))
    assert [model.encode(text).tolist() for text in texts] == trained_on
