"""The same seed on the same machine gives the same weights twice, bit for bit, with dropout as in real training.

Here both language models. That every cell does so is shown by test_matrix.py, which trains each of them twice, and
resumes one of the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

UPDATES = 6
DROPOUT = ("--dropout", 0.1, "--attention-dropout", 0.1)
COMMON = ("--optimizer", "adam", "--lr", 0.01, "--max-tokens", 500, "--num-workers", 0, "--no-epoch-checkpoints")
COMMON += ("--user-dir", lmfusion.USER_DIR, "--cpu", "--disable-validation", *DROPOUT)
LM_FLAGS = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256)
LM_FLAGS += ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2)
LM_FLAGS += ("--decoder-attention-heads", 2, "--share-decoder-input-output-embed", "--relu-dropout", 0.05)
LMS = {
    "cloze": ("lm.en", ("--self-target", "--arch", "bi_transformer_lm", *LM_FLAGS)),
    "causal": ("lm.de", ("--arch", "uni_transformer_lm", *LM_FLAGS)),
}


def pretraining(commands: Any, kind: str, out: Path, seed: int) -> list[object]:
    """A command line."""
    data, flags = LMS[kind]
    words = ["fairseq-train", commands.prepared / data, "--save-dir", out, "--max-update", UPDATES, "--seed", seed]
    return [*words, *COMMON, *flags]


def tensors(value: Any, name: str = "") -> dict[str, Tensor]:
    """All tensors in nested dictionaries and lists, by name."""
    if isinstance(value, Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {found: tensor for key, inner in items for found, tensor in tensors(inner, f"{name}.{key}").items()}


def trained(folder: Path) -> dict[str, Tensor]:
    """Weights and optimizer state at the end of a run."""
    state = read_checkpoint(folder / "checkpoint_last.pt")
    assert state["optimizer_history"][-1]["num_updates"] == UPDATES
    return tensors({key: state[key] for key in ("model", "last_optimizer_state")})


def differences(one: Path, other: Path) -> list[str]:
    """Weights and optimizer state that are not bitwise equal."""
    first, second = trained(one), trained(other)
    assert first.keys() == second.keys()
    assert len(first) > 30
    return sorted(name for name in first if not torch.equal(first[name], second[name]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", LMS)
def test_pretraining(commands: Any, tmp_path: Path, kind: str) -> None:
    for name, seed in (("one", 1), ("same", 1), ("other", 2)):
        commands.ok(*pretraining(commands, kind, tmp_path / name, seed))
    assert differences(tmp_path / "one", tmp_path / "same") == []
    assert len(differences(tmp_path / "one", tmp_path / "other")) > 30
