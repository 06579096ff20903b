"""Every cell of the table through the real commands: train, lose the LM files, generate, resume.

3 x 3 fusions, with SHDEMB where the decoder has embeddings, and SHARED. One of them runs by default, all with --slow.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.checkpoint.reading import read_checkpoint

FUSIONS = ("none", "elmo", "finetune")
SHDEMB, SHARED = "--share-decoder-input-output-embed", "--share-all-embeddings"
TIES = {"separate": (), "SHDEMB": (SHDEMB,), "SHARED": (SHARED,)}
CELLS = [(src, tgt, "separate") for src in FUSIONS for tgt in FUSIONS]
CELLS += [(src, "none", "SHDEMB") for src in FUSIONS] + [("none", "none", "SHARED")]
BY_DEFAULT = [("finetune", "finetune", "separate")]  # ELMo mixes: test_pipeline.py
every_cell = pytest.mark.parametrize(
    ("src", "tgt", "tie"),
    [pytest.param(*cell, marks=() if cell in BY_DEFAULT else pytest.mark.slow, id="-".join(cell)) for cell in CELLS],
)
SENTENCES = 25


@pytest.fixture
def own_lms(lm_files: dict[str, Path], tmp_path: Path) -> dict[str, Path]:
    """Copies of the language models that a test may delete."""
    copies = {side: tmp_path / f"{side}_lm.pt" for side in lm_files}
    for side, copy in copies.items():
        copy.write_bytes(lm_files[side].read_bytes())
    return copies


def cell_flags(src: str, tgt: str, tie: str, lms: dict[str, Path]) -> list[object]:
    """With the model's own dropout, the LM's and the mix's, as in real training."""
    flags: list[object] = ["--arch", "lmfusion_tiny", "--dropout", 0.1, "--attention-dropout", 0.1, *TIES[tie]]
    for side, fusion in (("src", src), ("tgt", tgt)):
        if fusion != "none":
            flags += [f"--{side}-fusion", fusion, f"--{side}-lm", lms[side], f"--{side}-representation-dropout", 0.1]
        if fusion == "elmo":
            flags += [f"--{side}-elmo-dropout", 0.2, f"--{side}-elmo-affine"]
    return flags


def hypotheses(output: str) -> list[str]:
    """Hypotheses, their scores and the scores of their tokens, in order."""
    lines = [line for line in output.splitlines() if line.startswith(("H-", "P-"))]
    assert len(lines) == 2 * SENTENCES
    return sorted(lines)


def tensors(value: Any, name: str = "") -> dict[str, Tensor]:
    """All tensors in nested dictionaries and lists, by name."""
    if isinstance(value, Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {found: tensor for key, inner in items for found, tensor in tensors(inner, f"{name}.{key}").items()}


def differences(one: Path, other: Path) -> list[str]:
    """Weights and optimizer state in which two checkpoints are not bitwise equal."""
    both = [read_checkpoint(path) for path in (one, other)]
    first, second = (tensors({key: state[key] for key in ("model", "last_optimizer_state")}) for state in both)
    assert set(first) == set(second)
    assert len(first) > 100
    return sorted(name for name in first if not torch.equal(first[name], second[name]))


@every_cell
def test_cell_outlives_its_lms_and_resumes_as_if_it_had_never_stopped(
    commands: Any, own_lms: dict[str, Path], tmp_path: Path, src: str, tgt: str, tie: str
) -> None:
    flags = cell_flags(src, tgt, tie, own_lms)
    commands.ok(*commands.training(tmp_path / "whole", 4, *flags))
    commands.ok(*commands.training(tmp_path / "parts", 2, *flags))
    generation = commands.generation(tmp_path / "parts" / "checkpoint_last.pt")
    with_files = hypotheses(commands.ok(*generation))
    for lm in own_lms.values():
        lm.unlink()

    assert hypotheses(commands.ok(*generation)) == with_files
    resumed = commands.ok(*commands.training(tmp_path / "parts", 4, *flags))
    assert "@ 2 updates" in resumed
    last = "checkpoint_last.pt"
    assert differences(tmp_path / "parts" / last, tmp_path / "whole" / last) == []
    inspected = commands.ok("lmfusion", "inspect", tmp_path / "parts" / last, "--json")
    found = json.loads(inspected[inspected.index("{") :])
    used = {side: fusion for side, fusion in (("source", src), ("target", tgt)) if fusion != "none"}
    assert {lm["side"]: lm["fusion"] for lm in found["language_models"]} == used
    assert [mix["side"] for mix in found["mixes"]] == [side for side, fusion in used.items() if fusion == "elmo"]
    assert found["updates"] == 4


@pytest.mark.slow
@pytest.mark.parametrize("frozen_updates", [1, 3])
def test_a_partly_finetuned_lm_resumes_so_too(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, frozen_updates: int
) -> None:
    """Stopped after two of four updates: while the LM trains at a rate of its own, and while it does not yet."""
    flags = cell_flags("finetune", "finetune", "separate", lm_files)
    flags += ["--src-lm-freeze-updates", frozen_updates, "--src-lm-lr-scale", 0.1, "--src-lm-freeze-layers", 1]
    for folder, stops in (("whole", (4,)), ("parts", (2, 4))):
        for updates in stops:
            commands.ok(*commands.training(tmp_path / folder, updates, *flags, "--weight-decay", 0.01))
    last = "checkpoint_last.pt"
    assert differences(tmp_path / "parts" / last, tmp_path / "whole" / last) == []


DROPPED = ("--arch", "lmfusion_tiny", "--dropout", 0.1)
TERMS = ("--lm-loss-weight", 0.5, "--gradients", "pcgrad", "--smart-weight", 1, "--smart-epsilon", 0.01)
OTHERS: dict[str, tuple[object, ...]] = {
    "attend": (*DROPPED, "--src-fusion", "attend", "--src-lm", "SRC", "--src-attend-dropnet", 0.8),
    "cold": (*DROPPED, "--tgt-fusion", "cold", "--tgt-lm", "TGT", "--update-freq", 2),
    "prior": (*DROPPED, "--criterion", "lm_prior", "--prior-lm", "TGT"),
    "terms": (
        *("--task", "lmfusion_translation", "--criterion", "translation_tasks", "--src-fusion", "finetune"),
        *(*DROPPED, "--src-lm", "SRC", *TERMS, "--bregman-weight", 1, "--update-freq", 2),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", OTHERS)
def test_what_draws_numbers_of_its_own_resumes_so_too(
    commands: Any, lm_files: dict[str, Path], tmp_path: Path, name: str
) -> None:
    """In the middle of an epoch: drop-net, the search and the order of SMART and PCGrad, averaged weights."""
    files = {"SRC": lm_files["src"], "TGT": lm_files["tgt"]}
    flags = [files.get(str(word), word) for word in OTHERS[name]]
    for folder, stops in (("whole", (5,)), ("parts", (2, 5))):
        for updates in stops:
            commands.ok(*commands.training(tmp_path / folder, updates, *flags))
    one, other = (tmp_path / folder / "checkpoint_last.pt" for folder in ("parts", "whole"))
    assert differences(one, other) == []
    averaged = [tensors(read_checkpoint(path)["extra_state"].get("ema", {})) for path in (one, other)]
    assert averaged[0].keys() == averaged[1].keys()
    assert all(torch.equal(averaged[0][key], value) for key, value in averaged[1].items())
