"""fairseq's own models give bitwise the same with lmfusion loaded as without, each command in a process of its own.

Every sentence is in a batch on both sides (``--required-batch-size-multiple 1``): at fairseq's default of 8 it leaves
out the last ones, which the table of patches names and which is tested by itself. Diverse groups are asked for in
fairseq-interactive, which counts sentences as the patch does.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint

# What fairseq itself needs to read its checkpoints with today's PyTorch, and to mask words with today's NumPy.
NEEDED = """import argparse, types
import numpy, torch
torch.serialization.add_safe_globals([argparse.Namespace])
if not hasattr(numpy, "compat"):
    numpy.compat = types.SimpleNamespace(long=int)
"""
COMMON = ("--cpu", "--num-workers", 0, "--required-batch-size-multiple", 1)
TRAINING = (*COMMON, "--optimizer", "adam", "--lr", 0.01, "--clip-norm", 1.0, "--dropout", 0.1, "--max-tokens", 500)
TRAINING += ("--max-update", 6, "--validate-interval-updates", 3, "--no-epoch-checkpoints", "--log-format", "json")
TRAINING += ("--log-interval", 1, "--seed", 1)
PAIRS = ("-s", "en", "-t", "de")
SMOOTHED = ("--criterion", "label_smoothed_cross_entropy", "--label-smoothing", 0.1)
SIZES = {"embed-dim": 16, "ffn-embed-dim": 16, "layers": 2, "attention-heads": 2}
ENCODER, DECODER = (
    [word for name, size in SIZES.items() for word in (f"--{side}-{name}", size)] for side in ("encoder", "decoder")
)
LSTM = ["--encoder-embed-dim", 16, "--encoder-hidden-size", 16]
LSTM += ["--decoder-embed-dim", 16, "--decoder-hidden-size", 16, "--decoder-out-embed-dim", 16]
LM = ["--task", "language_modeling", "--sample-break-mode", "eos", "--tokens-per-sample", 256]
MASKED = ["--task", "masked_lm", "--criterion", "masked_lm", "--sample-break-mode", "complete"]
MASKED += ["--tokens-per-sample", 256, "--max-positions", 256]
SEVERAL = ["--task", "multilingual_translation", "--lang-pairs", "en-de"]
MODELS: dict[str, tuple[str, list[object]]] = {
    "transformer": ("bitext-400", [*PAIRS, *SMOOTHED, "--arch", "transformer", *ENCODER, *DECODER]),
    "lstm": ("bitext-400", [*PAIRS, *SMOOTHED, "--arch", "lstm", *LSTM]),
    "transformer_lm": ("lm.en", [*LM, "--arch", "transformer_lm", *DECODER]),
    "roberta": ("lm.en", [*MASKED, "--arch", "roberta_base", *ENCODER]),
    "multilingual": ("bitext-400", [*SEVERAL, *SMOOTHED, "--arch", "multilingual_transformer", *ENCODER, *DECODER]),
}
SEARCHES: dict[str, list[object]] = {
    "beam": ["--beam", 5],
    "sampling": ["--beam", 3, "--nbest", 3, "--sampling", "--sampling-topk", 8, "--seed", 3],
    "nucleus": ["--beam", 2, "--nbest", 2, "--sampling", "--sampling-topp", 0.7, "--temperature", 1.3, "--seed", 4],
    "prefix": ["--beam", 4, "--prefix-size", 2],
    "long, unnormalized": ["--beam", 4, "--min-len", 6, "--unnormalized", "--nbest", 3],
}
INTERACTIVE: dict[str, list[object]] = {
    "diverse": ["--beam", 4, "--diverse-beam-groups", 2, "--diverse-beam-strength", 0.7],
    "constrained": ["--beam", 5, "--constraints", "ordered"],
}
QUICK = ("transformer", "lstm", "beam")


def cases(names: Any) -> list[Any]:
    """Parameters, of which all but a few are slow."""
    return [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in names]


@pytest.fixture(scope="module")
def user_dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is given as --user-dir: a folder without anything of ours in it, and lmfusion."""
    plain = tmp_path_factory.mktemp("plain") / "needed_by_fairseq"
    plain.mkdir()
    (plain / "__init__.py").write_text(NEEDED, encoding="utf-8")
    return {"plain": plain, "lmfusion": Path(lmfusion.USER_DIR)}


@pytest.fixture(scope="module")
def train(commands: Any, user_dirs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Trains a stock model with and without the plugin, once for all tests: the folders and the logs."""
    done: dict[str, dict[str, tuple[Path, str]]] = {}

    def run(model: str) -> dict[str, tuple[Path, str]]:
        if model not in done:
            data, flags = MODELS[model]
            found = {}
            for name, user_dir in user_dirs.items():
                out = tmp_path_factory.mktemp(f"{model}-{name}")
                words = ["fairseq-train", commands.prepared / data, "--user-dir", user_dir, "--save-dir", out]
                found[name] = (out, commands.ok(*words, *TRAINING, *flags))
            done[model] = found
        return done[model]

    return run


def tensors(value: Any, name: str = "") -> dict[str, Tensor]:
    """Return all tensors in nested dictionaries and lists, by name."""
    if isinstance(value, Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {found: tensor for key, inner in items for found, tensor in tensors(inner, f"{name}.{key}").items()}


def losses(log: str) -> list[str]:
    """Return training and validation losses, as they were printed."""
    kinds = (" train_inner | ", " valid | ")
    found = [line.partition(kind)[2] for line in log.splitlines() for kind in kinds if kind in line]
    return [value for line in found for key, value in json.loads(line).items() if key in ("loss", "valid_loss")]


@pytest.mark.parametrize("model", cases(MODELS))
def test_training_gives_the_same_weights_and_losses(model: str, train: Any) -> None:
    found = train(model)
    states = {name: read_checkpoint(out / "checkpoint_last.pt") for name, (out, _) in found.items()}
    kept = {name: tensors([state["model"], state["last_optimizer_state"]]) for name, state in states.items()}
    assert kept["plain"].keys() == kept["lmfusion"].keys()
    assert len(kept["plain"]) > 30
    assert [name for name, value in kept["plain"].items() if not torch.equal(value, kept["lmfusion"][name])] == []
    assert losses(found["plain"][1]) == losses(found["lmfusion"][1])
    assert len(losses(found["plain"][1])) == 6 + 2
    assert states["plain"]["extra_state"]["val_loss"] == states["lmfusion"]["extra_state"]["val_loss"]


def hypotheses(output: str) -> list[str]:
    """Return the sources, hypotheses and their scores, token by token, that a command printed."""
    return [line for line in output.splitlines() if line.split("-")[0] in ("S", "T", "H", "D", "P", "C")]


@pytest.mark.parametrize("model", ["transformer", pytest.param("lstm", marks=pytest.mark.slow)])
@pytest.mark.parametrize("search", cases(SEARCHES))
def test_generation_gives_the_same_hypotheses_and_scores(
    model: str, search: str, train: Any, commands: Any, user_dirs: dict[str, Path]
) -> None:
    checkpoint = train(model)["plain"][0] / "checkpoint_last.pt"
    given = {}
    for name, user_dir in user_dirs.items():
        words = ["fairseq-generate", commands.bitext, *PAIRS, "--path", checkpoint, "--gen-subset", "test"]
        words += ["--user-dir", user_dir, *COMMON, "--max-len-b", 12, "--batch-size", 9, *SEARCHES[search]]
        given[name] = hypotheses(commands.ok(*words))
    assert given["plain"] == given["lmfusion"]
    assert len(given["plain"]) >= 25 * 5


@pytest.mark.slow
@pytest.mark.parametrize("search", INTERACTIVE)
def test_interactive_gives_the_same_hypotheses_and_scores(
    search: str, train: Any, commands: Any, user_dirs: dict[str, Path], tmp_path: Path
) -> None:
    checkpoint = train("transformer")["plain"][0] / "checkpoint_last.pt"
    texts = [(commands.prepared / "bpe" / f"test.{lang}").read_text(encoding="utf-8") for lang in ("en", "de")]
    pairs = zip(*(text.splitlines() for text in texts))
    lines = [f"{source}\t{target.split()[0]}" if search == "constrained" else source for source, target in pairs]
    (tmp_path / "source").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    given = {}
    for name, user_dir in user_dirs.items():
        words = ["fairseq-interactive", commands.bitext, *PAIRS, "--path", checkpoint, "--user-dir", user_dir, "--cpu"]
        words += ["--input", tmp_path / "source", "--buffer-size", 9, "--max-tokens", 900, "--max-len-b", 12]
        given[name] = hypotheses(commands.ok(*words, *INTERACTIVE[search]))
    assert given["plain"] == given["lmfusion"]
    assert len(given["plain"]) >= 25 * 4


@pytest.mark.parametrize("model", cases(["transformer_lm", "multilingual"]))
def test_interactive_takes_tasks_whose_data_are_no_pairs(
    model: str, train: Any, commands: Any, user_dirs: dict[str, Path], tmp_path: Path
) -> None:
    """A language model goes on with a line; the task of several languages has a dictionary of pairs."""
    data = MODELS[model][0]
    task = ["--task", "language_modeling"] if model == "transformer_lm" else [*SEVERAL, *PAIRS]
    checkpoint = train(model)["plain"][0] / "checkpoint_last.pt"
    text = (commands.prepared / "bpe" / "test.en").read_text(encoding="utf-8")
    (tmp_path / "source").write_text("\n".join(text.splitlines()[:7]) + "\n", encoding="utf-8")
    given = {}
    for name, user_dir in user_dirs.items():
        words = ["fairseq-interactive", commands.prepared / data, *task, "--path", checkpoint, "--user-dir", user_dir]
        words += ["--cpu", "--input", tmp_path / "source", "--buffer-size", 4, "--max-len-b", 40, "--beam", 2]
        given[name] = hypotheses(commands.ok(*words))
    assert given["plain"] == given["lmfusion"]
    assert len(given["plain"]) == 7 * 4
