"""BERT through the real commands: documents, pretraining, validation, and a translation model that reads it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lmfusion

ROOT = Path(__file__).parents[2]
SIZE = ("--decoder-embed-dim", 16, "--decoder-ffn-embed-dim", 16, "--decoder-layers", 2)
SIZE += ("--decoder-attention-heads", 2)
TASK = ("--task", "bert_pretraining", "--tokens-per-sample", 256)


@pytest.fixture(scope="module")
def documents(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Descriptions of packages as documents, in the slice's BPE."""
    folder = tmp_path_factory.mktemp("documents")
    words = ["This package holds tools. They read old files. It has no manual.", "A game of cards. It is small."]
    for split in ("train", "valid"):
        (folder / split).write_text("\n".join(words * 20) + "\n", encoding="utf-8")
    files = [f"--{split}={folder / split}" for split in ("train", "valid")]
    files += ["--spm", commands.prepared / "spm.model", "--dict", commands.prepared / "dict.txt"]
    script = ROOT / "data-prep" / "documents.py"
    command = [sys.executable, script, *files, "--lang", "en", "--out", folder / "en", "--one-a-line"]
    made = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    assert "train 140 lines" in made.stdout  # 100 sentences and an empty line behind each document
    return folder / "en"


def pretraining(commands: Any, data: Path, out: Path, updates: int, *flags: object) -> list[object]:
    """fairseq-train of a BERT: the shared command with its task, criterion and sizes."""
    words = commands.pretraining("en", out, updates)
    start, end = words.index("--task"), words.index("--share-decoder-input-output-embed") + 1
    words = [words[0], data, *words[2:start], *words[end:]]
    return [*words, *TASK, "--criterion", "bert_pretraining", "--arch", "bert_lm", *SIZE, *flags]


@pytest.mark.slow
def test_it_trains_resumes_validates_and_joins_a_translation_model(
    commands: Any, documents: Path, tmp_path: Path
) -> None:
    lm = tmp_path / "bert"
    commands.ok(*pretraining(commands, documents, lm, 2))
    assert "40 documents (empty lines between)" in commands.ok(*pretraining(commands, documents, lm, 20))
    shown = commands.ok("lmfusion", "inspect", lm / "checkpoint_last.pt")
    assert "20 updates" in shown
    words = [
        "fairseq-validate",
        documents,
        "--user-dir",
        lmfusion.USER_DIR,
        "--cpu",
        *TASK,
        "--path",
        lm / "checkpoint_last.pt",
    ]
    found = commands.ok(*words, "--valid-subset", "valid", "--max-tokens", 2000)
    assert 1 < float(re.findall(r"\bppl ([\d.]+)", found)[-1]) < 2000
    assert 0 <= float(re.findall(r"nsp_accuracy ([\d.]+)", found)[-1]) <= 100
    flags = ["--arch", "lmfusion_tiny", "--src-fusion", "finetune", "--src-lm", lm / "checkpoint_last.pt"]
    out = tmp_path / "run"
    commands.ok(*commands.training(out, 2, *flags, "--src-lm-dropout", 0.2))
    (lm / "checkpoint_last.pt").unlink()
    commands.ok(*commands.training(out, 4, *flags, "--src-lm-dropout", 0.2))
    made = commands.ok(*commands.generation(out / "checkpoint_last.pt"))
    assert len([line for line in made.splitlines() if line.startswith("H-")]) == 25
    shown = commands.ok("lmfusion", "inspect", out / "checkpoint_last.pt", "--json")
    described, _ = json.JSONDecoder().raw_decode(shown[shown.index("{") :])
    assert [one["kind"] for one in described["language_models"]] == ["BERT"]


def test_masked_words_alone_on_text_without_documents(commands: Any, tmp_path: Path) -> None:
    data = commands.prepared / "lm.en"
    made = commands.ok(*pretraining(commands, data, tmp_path / "bert", 2, "--nsp-weight", 0))
    assert "no empty lines, so each line is one" in made
    assert "nsp" not in made.split("Start iterating", 1)[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--nsp-weight", -1], "--nsp-weight -1"),
        (["--decoder-attention-heads", 3], "--decoder-attention-heads 3"),
        (["--task", "language_modeling", "--criterion", "cross_entropy"], "--task bert_pretraining"),
    ],
)
def test_contradictions_are_refused(
    commands: Any, documents: Path, tmp_path: Path, flags: list[object], message: str
) -> None:
    assert message in commands.refused(*pretraining(commands, documents, tmp_path / "lm", 2, *flags))
