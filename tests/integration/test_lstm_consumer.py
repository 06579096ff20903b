"""``lstm_lmfusion`` through the real commands: train, lose the LM files, resume, generate, inspect, translate text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

SIZE = ["--arch", "lstm_lmfusion", "--encoder-embed-dim", 16, "--decoder-embed-dim", 16, "--decoder-out-embed-dim", 16]
SIZE += ["--encoder-bidirectional", "--decoder-attention", "additive", "--clip-norm", 0.1]
RMSPROP = ["--optimizer", "rmsprop", "--momentum", 0.9, "--lr", 0.001]


@pytest.mark.slow
def test_it_trains_resumes_and_translates_with_language_models_on_both_sides(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    copies = {side: tmp_path / f"{side}.pt" for side in lm_files}
    for side, path in copies.items():
        path.write_bytes(lm_files[side].read_bytes())
    flags = [
        *SIZE,
        *RMSPROP,
        *commands.text_flags,
        "--src-fusion",
        "elmo",
        "--src-lm",
        copies["src"],
        "--src-elmo-dropout",
        0.1,
    ]
    flags += [
        "--tgt-fusion",
        "finetune",
        "--tgt-lm",
        copies["tgt"],
        "--tgt-lm-lr-scale",
        0.5,
        "--save-interval-updates",
        2,
    ]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    commands.ok(*commands.training(whole, 4, *flags))
    commands.ok(*commands.training(resumed, 2, *flags))
    for path in copies.values():
        path.unlink()
    commands.ok(*commands.training(resumed, 4, *flags))
    one, other = (read_checkpoint(out / "checkpoint_last.pt")["model"] for out in (whole, resumed))
    assert all(torch.equal(one[name], other[name]) for name in one)
    shown = commands.ok("lmfusion", "inspect", whole / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert found["architecture"] == "lstm_lmfusion"
    assert [(lm["fusion"], lm["frozen"]) for lm in found["language_models"]] == [("elmo", True), ("finetune", False)]
    assert [mix["side"] for mix in found["mixes"]] == ["source"]
    made = commands.ok(*commands.generation(whole / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    translator = lmfusion.load_model(whole / "checkpoint_last.pt")
    together = translator.translate(["A package.", "", "This is a small tool for the network."], beam=2, max_len_b=10)
    assert together[1] == ""
    assert together[0] == translator.translate("A package.", beam=2, max_len_b=10)


@pytest.mark.slow
def test_a_frozen_language_model_can_be_stored_once(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    flags = [*SIZE, "--src-fusion", "elmo", "--src-lm", lm_files["src"], "--store-lm-once"]
    commands.ok(*commands.training(tmp_path / "run", 2, *flags))
    commands.ok(*commands.training(tmp_path / "run", 3, *flags))
    made = commands.ok(*commands.generation(tmp_path / "run" / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25


def test_contradictions_are_refused(commands: Any, lm_files: dict[str, Path], tmp_path: Path) -> None:
    two = [*SIZE, "--encoder-layers", 2]
    assert "--encoder-layers 2 and --decoder-layers 1" in commands.refused(
        *commands.training(tmp_path / "run", 2, *two)
    )
    wrong = [*SIZE, "--tgt-fusion", "elmo", "--tgt-lm", lm_files["src"]]
    assert "sees the words to be predicted" in commands.refused(*commands.training(tmp_path / "run", 2, *wrong))
