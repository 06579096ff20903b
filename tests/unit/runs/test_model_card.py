"""The card of a packed model: what is said of a run's best checkpoint is not said of another one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lmfusion.runs.model_card import model_card, with_licence

FACTS = {"text": {"languages": ["en", "de"]}, "architecture": "x", "total": 7, "trainable": 5, "language_models": []}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run whose best checkpoint has perplexity 9.5 and 12.34 BLEU."""
    result = {"best_valid_perplexity": 9.5, "best_valid_updates": 800}
    record = {"name": "mine", "steps": {"train": {"command": ["fairseq-train", "d", "--seed", "1"], "result": result}}}
    (tmp_path / "run.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "scores.json").write_text(json.dumps({"test": {"bleu": 12.34}}), encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(("checkpoint", "its_own"), [("checkpoint_best.pt", True), ("average.pt", False)])
def test_scores_are_of_the_checkpoint_that_has_them(folder: Path, checkpoint: str, its_own: bool) -> None:
    card = model_card(folder, FACTS, checkpoint=checkpoint)
    assert ("12.34" in card, "9.5" in card, "Not scored." in card) == (its_own, its_own, not its_own)
    assert "--seed: 1" in card


def test_a_checkpoint_that_was_translated_with_has_the_scores(folder: Path) -> None:
    record = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    record["steps"]["generate"] = {"command": ["fairseq-generate", "d", "--path", "r/checkpoints/average.pt"]}
    (folder / "run.json").write_text(json.dumps(record), encoding="utf-8")
    assert "12.34" in model_card(folder, FACTS, checkpoint="average.pt")
    assert "12.34" not in model_card(folder, FACTS, checkpoint="checkpoint_best.pt")


@pytest.mark.parametrize("before", ["", "CC0\nAll of it."])
def test_a_card_with_another_licence_is_that_of_the_run_with_it(folder: Path, before: str) -> None:
    assert with_licence(model_card(folder, FACTS, before), "MIT\n\nterms") == model_card(folder, FACTS, "MIT")
