"""``prefix_lm`` through the real commands: train from a language model's file, lose it, resume, generate, inspect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.lm.loading import load_lm

SIZE = ["--arch", "prefix_lm", "--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2]
SIZE += ["--decoder-attention-heads", 2, "--share-decoder-input-output-embed"]


@pytest.mark.slow
@pytest.mark.parametrize("started", [pytest.param(True, id="from a causal LM"), pytest.param(False, id="from scratch")])
def test_it_trains_resumes_and_translates(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, started: bool
) -> None:
    copy = tmp_path / "causal.pt"
    copy.write_bytes(lm_files["tgt"].read_bytes())
    flags = ["--arch", "prefix_lm", "--prefix-lm", copy] if started else SIZE
    flags = [*flags, *commands.text_flags, "--save-interval-updates", 2, "--dropout", 0.2]
    whole, resumed = tmp_path / "whole", tmp_path / "resumed"
    commands.ok(*commands.training(whole, 4, *flags))
    commands.ok(*commands.training(resumed, 2, *flags))
    copy.unlink()
    commands.ok(*commands.training(resumed, 4, *flags))
    one, other = (read_checkpoint(out / "checkpoint_last.pt")["model"] for out in (whole, resumed))
    assert all(torch.equal(one[name], other[name]) for name in one)
    shown = commands.ok("lmfusion", "inspect", whole / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert (found["kind"], found["architecture"]) == ("sequence-to-sequence model", "prefix_lm")
    assert [start["side"] for start in found["starts"]] == ["both"] * started
    assert found["total"] == found["trainable"] == sum(p.numel() for p in load_lm(lm_files["tgt"]).parameters())
    batched = commands.ok(*commands.generation(whole / "checkpoint_last.pt"))
    single = commands.ok(*commands.generation(whole / "checkpoint_last.pt", "--batch-size", 1))
    hypotheses = [
        sorted(line.split("\t")[2] for line in made.splitlines() if line.startswith("H-")) for made in (batched, single)
    ]
    assert len(hypotheses[0]) == 25
    assert hypotheses[0] == hypotheses[1]
    translator = lmfusion.load_model(whole / "checkpoint_last.pt")
    together = translator.translate(["A package.", "", "This is a small tool for the network."], beam=2, max_len_b=10)
    assert together[1] == ""
    assert together[0] == translator.translate("A package.", beam=2, max_len_b=10)
    commands.ok("lmfusion", "pack", whole / "checkpoint_last.pt", "--out", tmp_path / "m.lmf", "--full")
    packed = lmfusion.load_model(tmp_path / "m.lmf")
    assert packed.translate("A package.", beam=2, max_len_b=10) == together[0]


def test_chunked_losses_are_the_same_and_another_language_model_is_refused(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path
) -> None:
    flags = ["--arch", "prefix_lm", "--prefix-lm", lm_files["tgt"]]
    commands.ok(*commands.training(tmp_path / "all", 2, *flags))
    chunked = ["--criterion", "chunked_label_smoothed_cross_entropy", "--loss-chunk-tokens", 7]
    commands.ok(*commands.training(tmp_path / "chunks", 2, *flags, *chunked))
    one, other = (read_checkpoint(tmp_path / out / "checkpoint_last.pt")["model"] for out in ("all", "chunks"))
    for name in one:
        torch.testing.assert_close(one[name], other[name], rtol=0, atol=1e-4)
    changed = read_checkpoint(lm_files["tgt"])
    changed["model"]["decoder.layers.0.ffn.fc1.bias"] += 1
    torch.save(changed, tmp_path / "other.pt")
    flags[-1] = tmp_path / "other.pt"
    assert "another language model than" in commands.refused(*commands.training(tmp_path / "all", 4, *flags))
