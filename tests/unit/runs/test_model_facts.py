"""model_facts.py: what a report needs to know of a model outlives its checkpoints."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.runs import live, live_line, model_facts, watchers
from lmfusion.runs.run_folder import RunFolder


def checkpoint() -> dict[str, Any]:
    """A model with an ELMo mix on its source side, as fairseq saves it."""
    prefix = "encoder.embed_tokens.representation."
    weights = {
        f"{prefix}mix.weights": torch.tensor([0.0, 1.0]),
        f"{prefix}mix.gamma": torch.tensor([2.0]),
        "decoder.layer.weight": torch.zeros(3, 4),
    }
    lm = json.dumps({"lm": {"family": "uni_transformer_lm"}})
    model = {"_name": "src_elmo_tiny", "src_fusion": "elmo", "src_lm_config": lm}
    return {"model": weights, "cfg": {"model": model}, "optimizer_history": [{"num_updates": 7}]}


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    """A run with a trained model."""
    folder = RunFolder(tmp_path / "run")
    folder.checkpoints.mkdir(parents=True)
    folder.begin("train", ["fairseq-train"])
    torch.save(checkpoint(), folder.checkpoints / "checkpoint_best.pt")
    return folder


def test_the_facts_are_there_when_the_checkpoint_is_gone(run: RunFolder) -> None:
    model_facts.record(run)
    (run.checkpoints / "checkpoint_best.pt").unlink()
    facts = model_facts.read(run)
    assert facts["architecture"] == "src_elmo_tiny"
    assert facts["path"] == "checkpoint_best.pt"
    (mix,) = facts["mixes"]
    assert (mix["side"], mix["gamma"]) == ("source", 2.0)
    # softmax of 0 and 1
    assert list(mix["shares"].values()) == pytest.approx([0.26894142, 0.73105858])
    assert run.step("train")["command"] == ["fairseq-train"], "the rest of run.json stays"


def test_a_run_of_before_they_were_kept_has_them_from_its_checkpoint(run: RunFolder) -> None:
    assert "model" not in run.record
    assert model_facts.read(run)["mixes"]
    assert "model" not in run.record, "reading changes nothing"


def test_without_checkpoint_there_are_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.begin("train", ["fairseq-train"])
    model_facts.record(folder)
    assert model_facts.read(folder) == {}


def test_a_damaged_checkpoint_is_an_error_that_names_it(run: RunFolder) -> None:
    (run.checkpoints / "checkpoint_best.pt").write_bytes(b"cut off")
    with pytest.raises(InputError, match=r"checkpoint_best\.pt"):
        model_facts.record(run)


def test_a_training_that_finishes_records_them(run: RunFolder) -> None:
    args = live.parse_args([str(run.path), "train", "--label", "toy", "--updates", "9", "--", sys.executable, "-c", ""])
    (run.path / "run.json").write_text("{}")
    watcher = watchers.TrainingWatcher("toy", 9)
    assert live.run_step(run, args, watcher, live_line.LiveLine(io.StringIO())) == 0
    assert run.record["model"]["architecture"] == "src_elmo_tiny"
