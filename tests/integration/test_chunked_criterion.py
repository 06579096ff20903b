"""Commands with the chunked criterions: the training and validation of fairseq's, on the command line and by Hydra."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

CHUNKED = ("--criterion", "chunked_label_smoothed_cross_entropy", "--loss-chunk-tokens", 100, "--report-accuracy")
VALID = re.compile(r'"valid_(loss|nll_loss|accuracy)": "([\d.]+)"')


def figures(output: str) -> dict[str, float]:
    """Of the last validation."""
    return {name: float(value) for name, value in VALID.findall(output)}


def weights(out: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = read_checkpoint(out / "checkpoint_last.pt")["model"]
    return found


@pytest.mark.slow
def test_translation_trains_and_validates_as_with_fairseqs_criterion(commands: Any, tmp_path: Path) -> None:
    flags = ["--arch", "lmfusion_tiny", "--share-decoder-input-output-embed"]
    theirs = figures(commands.ok(*commands.training(tmp_path / "theirs", 3, *flags, "--report-accuracy")))
    ours = figures(commands.ok(*commands.training(tmp_path / "ours", 3, *flags, *CHUNKED)))
    assert set(theirs) == {"loss", "nll_loss", "accuracy"}
    assert ours == pytest.approx(theirs, abs=0.002)
    expected = weights(tmp_path / "theirs")
    for name, tensor in weights(tmp_path / "ours").items():
        torch.testing.assert_close(tensor, expected[name], rtol=0, atol=1e-3, msg=name)
    words = ["fairseq-validate", commands.bitext, "--path", tmp_path / "ours" / "checkpoint_last.pt", "--cpu"]
    words += ["--valid-subset", "valid", "--log-format", "json", "--user-dir", lmfusion.USER_DIR, "--max-tokens", 2000]
    validated = figures(commands.ok(*words, "--task", "translation"))
    assert validated == pytest.approx(ours, abs=0.002)


@pytest.mark.slow
def test_hydra_takes_them_by_name(commands: Any, tmp_path: Path) -> None:
    words = ["fairseq-hydra-train", "--config-dir", Path(lmfusion.USER_DIR) / "config", "--config-name", "seq2seq"]
    words += ["cell=baseline", "model._name=lmfusion_tiny", f"task.data={commands.bitext}", "task.source_lang=en"]
    words += ["task.target_lang=de", f"bpe.sentencepiece_model={commands.prepared / 'spm.model'}", "common.cpu=true"]
    words += ["dataset.num_workers=0", "dataset.max_tokens=2000", "optimization.max_update=1"]
    words += [f"checkpoint.save_dir={tmp_path}", "criterion._name=chunked_label_smoothed_cross_entropy"]
    commands.ok(*words, "+criterion.loss_chunk_tokens=50")
    criterion = read_checkpoint(tmp_path / "checkpoint_last.pt")["cfg"]["criterion"]
    assert criterion["_name"] == "chunked_label_smoothed_cross_entropy"
    assert (criterion["label_smoothing"], criterion["loss_chunk_tokens"]) == (0.1, 50)


@pytest.mark.slow
def test_a_model_of_fairseqs_is_refused_in_one_line(commands: Any, tmp_path: Path) -> None:
    words = commands.training(tmp_path, 1, "--arch", "transformer", *CHUNKED)
    assert "the chunked criterions need a model of lmfusion's" in commands.refused(*words)
