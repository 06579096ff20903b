"""A row of each folder, really trained, generated and scored for a few updates on a slice of the embedded corpus."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import pytest
from fairseq.data import Dictionary, data_utils

import lmfusion
from lmfusion.inspection import inspect_checkpoint


@pytest.mark.slow
def test_a_translation_row_fine_tunes_the_shipped_lm_and_does_nothing_twice(
    run: Callable[..., str], tmp_path: Path
) -> None:
    run("debian_ende/src_ft.sh", OUT=str(tmp_path))
    row = tmp_path / "src_ft"
    assert "tok:13a" in json.loads((row / "scores.json").read_text())["test"]["signature"]
    assert len((row / "test.hyp").read_text(encoding="utf-8").splitlines()) == 25
    logs = [(row / name).read_text(encoding="utf-8") for name in ("train.log", "generate.log")]

    again = run("debian_ende/src_ft.sh", OUT=str(tmp_path))
    assert again.count("src_ft: finished before") == 2
    assert [(row / name).read_text(encoding="utf-8") for name in ("train.log", "generate.log")] == logs


@pytest.mark.slow
def test_a_translation_row_starts_from_a_denoiser_of_both_languages(run: Callable[..., str], tmp_path: Path) -> None:
    shown = run("debian_ende/denoising.sh", OUT=str(tmp_path), DENOISER_UPDATES="4")
    assert "denoiser: update 4, validation perplexity" in shown
    row = tmp_path / "denoising"
    assert len((row / "test.hyp").read_text(encoding="utf-8").splitlines()) == 25
    model, denoiser = (
        inspect_checkpoint(tmp_path / name / "checkpoints" / "checkpoint_last.pt") for name in ("denoising", "denoiser")
    )
    assert denoiser.total == model.total + 16, "the vector of <mask>"


@pytest.mark.slow
def test_a_synopsis_row_pretrains_its_causal_lm_cuts_descriptions_and_scores_rouge(
    run: Callable[..., str], tiny: dict[str, str], tmp_path: Path
) -> None:
    shown = run("debian_synopsis/tgt_elmo.sh", OUT=str(tmp_path))
    assert "causal.en: update 4, validation perplexity" in shown
    row = tmp_path / "tgt_elmo"
    score = json.loads((row / "scores.json").read_text())["test"]
    assert score["summaries"] == 25
    assert 0 <= score["rouge2"]["f1"]["mean"] <= score["rouge1"]["f1"]["mean"] < 1

    generated = (row / "generate.log").read_text(encoding="utf-8").splitlines()
    sources = {int(line[2:].split("\t")[0]): line.split("\t")[1] for line in generated if line.startswith("S-")}
    symbols = (tmp_path / "data" / "bpe" / "test.description").read_text(encoding="utf-8").splitlines()
    cut = [line.split()[: int(tiny["MAX_SOURCE"]) - 1] for line in symbols]  # </s> counts
    letters = ["".join(words).replace("\u2581", "") for words in cut]
    assert [sources[n].replace(" ", "") for n in range(25)] == letters
    assert any(len(words) < len(line.split()) for words, line in zip(cut, symbols))
    lengths = [len(line.split("\t")[2].split()) for line in generated if line.startswith("H-")]
    assert 3 <= min(lengths) <= max(lengths) <= int(tiny["MAX_LEN"])

    assert_raw_text_becomes_the_prepared_ids(tmp_path, int(tiny["MAX_SOURCE"]))
    lead = run("debian_synopsis/lead.sh", OUT=str(tmp_path))
    assert "lead: ROUGE-1/2/L" in lead


def assert_raw_text_becomes_the_prepared_ids(out: Path, max_source: int) -> None:
    """The trained model makes of raw descriptions what it was trained on: apostrophes, and the cut to a length."""
    model = lmfusion.load_model(out / "tgt_elmo" / "checkpoints")
    bitext = out / "data" / "bitext-400"
    dictionary = Dictionary.load(str(bitext / "dict.description.txt"))
    prepared = data_utils.load_indexed_dataset(str(bitext / "test.description-synopsis.description"), dictionary)
    texts = (out / "data" / "text" / "test.description").read_text(encoding="utf-8").splitlines()
    assert any("'s " in text for text in texts)
    last = max_source - 1
    trained_on = [[*ids.tolist()[:-1][:last], dictionary.eos()] for ids in prepared]
    assert any(len(cut) < len(ids) for cut, ids in zip(trained_on, prepared))
    assert [model.encode(text).tolist() for text in texts] == trained_on
