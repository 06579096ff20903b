"""Denoising pretraining through fairseq's own task and commands, and a translation model that starts from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.lm.symbols import encode_symbols
from lmfusion.text.binarize import fairseq_preprocess
from lmfusion.text.dictionaries import read_dictionary
from lmfusion.text.merged import merge

NOISE = ("--task", "denoising", "--sample-break-mode", "eos", "--tokens-per-sample", 256, "--mask", 0.35)
NOISE += ("--mask-length", "span-poisson", "--poisson-lambda", 3.5, "--replace-length", 1, "--mask-random", 0.1)
NOISE += ("--rotate", 0, "--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)
SIZE = ("--arch", "lmfusion_tiny", "--encoder-embed-dim", 32, "--decoder-embed-dim", 32, "--share-all-embeddings")
SIZE += ("--encoder-layers", 1, "--decoder-layers", 1)


@pytest.fixture(scope="module")
def both(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The slice's English and German in one folder."""
    folder: Path = tmp_path_factory.mktemp("merged") / "both"
    merge([commands.prepared / "lm.en", commands.prepared / "lm.de"], folder)
    return folder


def denoising(commands: Any, data: Path, out: Path, updates: int, *flags: object) -> list[object]:
    """fairseq-train of a denoiser: the shared command of translation with its task."""
    words = commands.training(out, updates, data=data)
    start, end = words.index("-s"), words.index("--optimizer")
    return [*words[:start], *NOISE, *words[end:], "--num-workers", 1, *SIZE, *flags]


def losses(log: str) -> list[float]:
    """The training loss of each logged update."""
    return [float(found) for found in re.findall(r'train_inner.*?"loss": "([\d.]+)"', log)]


def weights(checkpoint: Path) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = read_checkpoint(checkpoint)["model"]
    return found


@pytest.mark.slow
def test_it_learns_resumes_and_starts_a_translation_model(commands: Any, both: Path, tmp_path: Path) -> None:
    denoiser, log = tmp_path / "denoiser", ("--log-interval", 1)
    begun = commands.ok(*denoising(commands, both, denoiser, 20, *log))
    resumed = commands.ok(*denoising(commands, both, denoiser, 40, *log))
    assert "unknown symbols (<unk>) in train, text: 0.0" in begun
    found = losses(begun) + losses(resumed)
    assert len(found) == 40, "none is made twice"
    assert sum(found[-5:]) < sum(found[:5]) - 5 * 1.0, found
    assert read_checkpoint(denoiser / "checkpoint_last.pt")["optimizer_history"][-1]["num_updates"] == 40
    learned = weights(denoiser / "checkpoint_last.pt")
    dictionary = read_dictionary(both / "dict.txt")
    assert torch.equal(learned["symbol_table.codes"], encode_symbols([*dictionary.symbols, "<mask>"]))

    run, flags = tmp_path / "run", (*SIZE, "--finetune-from-model", denoiser / "checkpoint_last.pt")
    commands.ok(*commands.training(run, 1, *flags, "--lr", 0))
    started = weights(run / "checkpoint_last.pt")
    assert set(started) == set(learned) - {"symbol_table.codes"}
    for name, weight in started.items():
        assert torch.equal(weight, learned[name][: len(weight)]), name
    (denoiser / "checkpoint_last.pt").rename(tmp_path / "elsewhere.pt")
    assert "1 updates" in commands.ok(*commands.training(run, 3, *flags, "--lr", 0.001))
    made = commands.ok(*commands.generation(run / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25


@pytest.mark.slow
def test_the_same_command_gives_the_same_weights(commands: Any, both: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        commands.ok(*denoising(commands, both, tmp_path / name, 4))
    first, second = (weights(tmp_path / name / "checkpoint_last.pt") for name in ("one", "two"))
    assert all(torch.equal(first[name], second[name]) for name in first)


@pytest.mark.slow
def test_what_cannot_start_a_translation_is_refused_in_one_line(commands: Any, both: Path, tmp_path: Path) -> None:
    denoiser = tmp_path / "denoiser"
    commands.ok(*denoising(commands, both, denoiser, 1))
    start = ("--finetune-from-model", denoiser / "checkpoint_last.pt")
    other = commands.refused(*commands.training(tmp_path / "other", 1, *SIZE, "--encoder-layers", 2, *start))
    assert str(denoiser) in other
    words = (both / "dict.txt").read_text(encoding="utf-8").splitlines()
    words[5], words[6] = words[6], words[5]
    (tmp_path / "dict.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    files = [f"--{split}pref={commands.prepared / 'bpe' / split}" for split in ("train", "valid")]
    flags = [*files, "-s", "en", "-t", "de", "--srcdict", str(tmp_path / "dict.txt"), "--joined-dictionary"]
    fairseq_preprocess(tmp_path / "data", flags, tmp_path / "log")
    line = commands.refused(*commands.training(tmp_path / "run", 1, *SIZE, *start, data=tmp_path / "data"))
    assert "the source dictionary is not the dictionary the denoising model was trained with" in line
    assert "index 9" in line
