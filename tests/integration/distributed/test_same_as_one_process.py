"""Two processes train as one process with --update-freq 2 does: the same batches, the same losses.

fairseq deals batches to processes in turn, and accumulates batches in the same order, so that an update sees the same
sentences either way.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Callable

import pytest
import torch
from torch import Tensor

from lmfusion.checkpoint.reading import read_checkpoint

UPDATES = 20
QUIET = ("--dropout", 0, "--attention-dropout", 0)
# Small batches: five or more updates an epoch, whose last one has a batch for one of the processes only.
TRAINING = ("--max-tokens", 500, "--clip-norm", 0.1, "--log-interval", 1, "--max-update", UPDATES)
TIED, SHARED = "--share-decoder-input-output-embed", "--share-all-embeddings"
CELLS: dict[str, list[object]] = {
    "baseline": [],
    "SHARED": [SHARED],
    "SRC-ELMO+SHDEMB": ["--src-fusion", "elmo", "--src-elmo-affine", TIED],
    "SRC-ELMO stored": ["--src-fusion", "elmo", "--src-lm-cache", "CACHE"],
    "SRC-FT": ["--src-fusion", "finetune"],
    "TGT-ELMO": ["--tgt-fusion", "elmo", "--tgt-elmo-affine"],
    "TGT-FT": ["--tgt-fusion", "finetune"],
    "SRC-FT PCGrad": [
        *("--src-fusion", "finetune", "--task", "lmfusion_translation", "--criterion", "translation_tasks"),
        *("--gradients", "pcgrad", "--lm-loss-weight", 1),
    ],
    "SRC-FT partly": ["--src-fusion", "finetune", "--src-lm-freeze-layers", 1, "--src-lm-lr-scale", 0.5],
}
LMS = {
    "cloze": ("lm.en", ["--self-target", "--arch", "bi_transformer_lm"]),
    "causal": ("lm.de", ["--arch", "uni_transformer_lm"]),
}
LM_FLAGS = ("--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256, TIED)
LM_FLAGS += ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2)
LM_FLAGS += ("--decoder-attention-heads", 2, "--relu-dropout", 0, "--optimizer", "nag", "--lr", 0.1)
LEGACY = ("--ddp-backend", "legacy_ddp")
FROZEN = ".embed_tokens.representation.lm."


def figures(output: str, kind: str, name: str) -> list[float]:
    """Every value of a name that fairseq logged of training ("train_inner") or validation ("valid")."""
    lines = [line.split(f"| {kind} | ", 1)[1] for line in output.splitlines() if f"| {kind} | {{" in line]
    return [float(json.loads(line)[name]) for line in lines]


def losses(output: str) -> dict[str, list[float]]:
    """What both ways of training must agree in; fairseq prints three decimals."""
    found = {name: figures(output, "train_inner", name) for name in ("loss", "gnorm", "bsz", "wpb")}
    assert len(found["loss"]) == UPDATES
    found["valid"] = figures(output, "valid", "valid_loss")
    assert found["valid"]
    return found


def weights(folder: Path) -> dict[str, Tensor]:
    """The weights at the end of training."""
    loaded: dict[str, Tensor] = read_checkpoint(folder / "checkpoint_last.pt")["model"]
    return loaded


def assert_same(one: dict[str, list[float]], two: dict[str, list[float]]) -> None:
    """Losses and gradient norms up to the last digit printed; sizes exactly."""
    for name in ("loss", "gnorm", "valid"):
        assert two[name] == pytest.approx(one[name], abs=0.0021), name
    for name in ("bsz", "wpb"):
        assert two[name] == one[name], name
    assert one["loss"][-1] < one["loss"][0] - 0.1


def both_ways(commands: Any, run_two: Callable[..., Any], words: list[object], out: Path, *flags: object) -> None:
    """Train by one process and by two, compare what they logged."""
    flags = (*flags, *QUIET, *TRAINING)
    one = commands.ok(*(str(word).replace("OUT", str(out / "one")) for word in (*words, *flags)), "--update-freq", 2)
    two = run_two(*(str(word).replace("OUT", str(out / "two")) for word in (*words, *flags)))
    assert [done.status for done in two] == [0, 0], two[0].output[-3000:] + two[1].output[-3000:]
    assert "training on 2 devices" in two[0].output
    assert_same(losses(one), losses(two[0].output))


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "backend"), [("cloze", ()), ("causal", ()), ("cloze", LEGACY)])
def test_a_language_model(
    commands: Any, run_two: Callable[..., Any], tmp_path: Path, kind: str, backend: tuple[str, ...]
) -> None:
    data, flags = LMS[kind]
    words = commands.training("OUT", UPDATES, data=commands.prepared / data)
    words = [word for word in words if word not in ("-s", "-t", "en", "de")]
    at = words.index("--criterion")
    del words[at : at + 4]  # label smoothing is for translation
    both_ways(commands, run_two, words, tmp_path, *LM_FLAGS, *flags, *backend)
    one, two = weights(tmp_path / "one"), weights(tmp_path / "two")
    for name, value in one.items():
        torch.testing.assert_close(two[name], value, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.parametrize(
    "cell", [pytest.param(name, marks=() if name == "SRC-ELMO+SHDEMB" else pytest.mark.slow) for name in CELLS]
)
def test_a_cell(
    commands: Any, run_two: Callable[..., Any], lm_files: dict[str, Path], tmp_path: Path, cell: str
) -> None:
    flags = [tmp_path / "OUT-states" if flag == "CACHE" else flag for flag in CELLS[cell]]
    for side in ("src", "tgt"):
        if f"--{side}-fusion" in flags:
            flags += [f"--{side}-lm", lm_files[side]]
        if "finetune" in flags and f"--{side}-fusion" in flags:
            flags += [f"--{side}-lm-{what}dropout={0}" for what in ("", "attention-", "relu-")]
    words = commands.training("OUT", UPDATES, "--arch", "lmfusion_tiny", *flags)
    both_ways(commands, run_two, words, tmp_path)
    if "elmo" in flags:
        (side,) = (side for side in ("src", "tgt") if f"--{side}-fusion" in flags)
        assert_lm_unchanged(weights(tmp_path / "two"), lm_files[side])


def assert_lm_unchanged(trained: dict[str, Tensor], lm_file: Path) -> None:
    """A frozen LM's weights are bit for bit those of its file, up to the softmax that only predictions need."""
    before = read_checkpoint(lm_file)["model"]
    inside = {name.split(FROZEN)[1]: value for name, value in trained.items() if FROZEN in name}
    assert len(inside) > 20
    for name, value in inside.items():
        assert torch.equal(value, before[f"decoder.{name}"]), name
