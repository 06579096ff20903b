"""Word vectors through the real commands: train with them on both sides, lose the files, resume, generate, inspect."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.reading import read_checkpoint

WIDTH = 16


def write_vectors(path: Path, dictionary: Path, every: int) -> None:
    """Random vectors of every n-th symbol of a dictionary of fairseq's."""
    words = [line.split()[0] for line in dictionary.read_text(encoding="utf-8").splitlines()][::every]
    lines = [f"{word} {' '.join(map(str, torch.randn(WIDTH).tolist()))}" for word in words]
    path.write_text("\n".join([f"{len(words)} {WIDTH}", *lines]) + "\n", encoding="utf-8")


@pytest.fixture
def files(commands: Any, tmp_path: Path) -> dict[str, Path]:
    """Vectors of every other symbol, and of a quarter of the target's."""
    paths = {"en": tmp_path / "en.vec", "de": tmp_path / "de.vec"}
    for every, (lang, path) in zip((2, 4), paths.items()):
        write_vectors(path, commands.bitext / f"dict.{lang}.txt", every)
    return paths


@pytest.mark.slow
def test_vectors_train_resume_generate_and_are_shown(commands: Any, files: dict[str, Path], tmp_path: Path) -> None:
    flags = ["--arch", "lmfusion_tiny", "--src-fusion", "elmo", "--src-lm", files["en"], "--src-positions", "own"]
    flags += ["--tgt-fusion", "finetune", "--tgt-lm", files["de"]]
    out = tmp_path / "run"
    told = commands.ok(*commands.training(out, 2, *flags))
    assert "source language model: it knows 50.0% of the dictionary's symbols" in told
    assert "target language model: it knows 25.0% of the dictionary's symbols" in told
    before = read_checkpoint(out / "checkpoint_last.pt")["model"]
    for path in files.values():
        path.unlink()
    commands.ok(*commands.training(out, 4, *flags))
    after = read_checkpoint(out / "checkpoint_last.pt")["model"]
    frozen, trained = (f"{s}.embed_tokens.representation.lm.token_embedding.weight" for s in ("encoder", "decoder"))
    assert torch.equal(before[frozen], after[frozen])
    assert not torch.equal(before[trained], after[trained])
    made = commands.ok(*commands.generation(out / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    shown = commands.ok("lmfusion", "inspect", out / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert [lm["kind"] for lm in found["language_models"]] == ["table of word vectors"] * 2
    assert [lm["frozen"] for lm in found["language_models"]] == [True, False]


def test_vectors_of_other_text_are_refused(commands: Any, tmp_path: Path) -> None:
    (tmp_path / "other.vec").write_text("2 3\nnowhere-else 1 2 3\nnor-this 4 5 6\n", encoding="utf-8")
    flags = ["--arch", "lmfusion_tiny", "--src-fusion", "elmo", "--src-lm", tmp_path / "other.vec"]
    assert "--src-positions own" in commands.refused(*commands.training(tmp_path / "run", 2, *flags))
    flags += ["--src-positions", "none"]
    refused = commands.refused(*commands.training(tmp_path / "run", 2, *flags))
    assert "none of the" in refused
    assert "source dictionary" in refused
