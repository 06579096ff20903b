"""Recurrent language models through the real commands: pretrain, resume, evaluate, translate with them."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

SIZE = ("--decoder-embed-dim", 16, "--decoder-layers", 2, "--share-decoder-input-output-embed")
TASK = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256)
BOTH = ("--future-target", "--past-target")


def pretraining(commands: Any, lang: str, out: Path, updates: int, *flags: object) -> list[object]:
    """fairseq-train of a recurrent LM: the shared command with the size flags that these models have."""
    words = commands.pretraining(lang, out, updates)
    start = words.index("--decoder-embed-dim")
    end = words.index("--share-decoder-input-output-embed") + 1
    return [*words[:start], *SIZE, *words[end:], "--clip-norm", 0.1, *flags]


def perplexity(output: str) -> float:
    found = re.findall(r"Perplexity: ([\d.]+)", output)
    assert found, output[-2000:]
    return float(found[-1])


@pytest.mark.slow
def test_they_train_resume_evaluate_and_join_a_translation_model(commands: Any, tmp_path: Path) -> None:
    elmo, causal = tmp_path / "elmo", tmp_path / "gru"
    models = {
        "en": (elmo, ["--arch", "bi_recurrent_lm", *BOTH]),
        "de": (causal, ["--arch", "uni_recurrent_lm", "--cell", "gru", "--criterion", "chunked_cross_entropy"]),
    }
    for lang, (out, flags) in models.items():
        commands.ok(*pretraining(commands, lang, out, 2, *flags))
        assert "@ 30 updates" in commands.ok(*pretraining(commands, lang, out, 30, *flags))
    assert "pair of recurrent language models" in commands.ok("lmfusion", "inspect", elmo / "checkpoint_last.pt")
    words = commands.with_lm("fairseq-eval-lm", "de", causal / "checkpoint_last.pt")
    symbols = len((commands.prepared / "lm.de" / "dict.txt").read_text(encoding="utf-8").splitlines())
    assert 1 < perplexity(commands.ok(*words)) < symbols
    flags = ["--arch", "lmfusion_tiny", "--src-fusion", "elmo", "--src-lm", elmo / "checkpoint_last.pt"]
    flags += ["--tgt-fusion", "finetune", "--tgt-lm", causal / "checkpoint_last.pt", "--tgt-lm-dropout", 0.2]
    out = tmp_path / "run"
    commands.ok(*commands.training(out, 2, *flags))
    for folder in (elmo, causal):
        (folder / "checkpoint_last.pt").unlink()
    commands.ok(*commands.training(out, 4, *flags))
    made = commands.ok(*commands.generation(out / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    shown = commands.ok("lmfusion", "inspect", out / "checkpoint_last.pt", "--json")
    found, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    kinds = [lm["kind"] for lm in found["language_models"]]
    assert kinds == ["pair of recurrent language models", "recurrent language model"]
    assert list(found["mixes"][0]["shares"]) == ["embedding", "layer 1", "layer 2"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--arch", "uni_recurrent_lm", "--identity-start"], "--identity-start belongs to --cell rnn"),
        (["--arch", "bi_recurrent_lm"], "--future-target --past-target"),
    ],
)
def test_contradictions_are_refused(commands: Any, tmp_path: Path, flags: list[str], message: str) -> None:
    assert message in commands.refused(*pretraining(commands, "en", tmp_path / "lm", 2, *flags))
