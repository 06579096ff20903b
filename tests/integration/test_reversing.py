"""What attention is worth to an LSTM: random words in the reverse order, in sentences as long as any it has seen."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

WORDS, LONGEST = [f"w{number}" for number in range(20)], 30
SIZES = {"train": 4000, "valid": 100, "test": 100}


@pytest.fixture(scope="module")
def bitext(commands: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Sentences of 2 to 30 random words, in the test set of 30, and the same in the reverse order."""
    folder, generator = tmp_path_factory.mktemp("reversing"), random.Random(1)
    for name, size in SIZES.items():
        lengths = [LONGEST if name == "test" else generator.randint(2, LONGEST) for _ in range(size)]
        lines = [generator.choices(WORDS, k=length) for length in lengths]
        for side, order in (("en", 1), ("de", -1)):
            text = "".join(f"{' '.join(line[::order])}\n" for line in lines)
            (folder / f"{name}.{side}").write_text(text, encoding="utf-8")
    files = [f"--{name}pref={folder / name}" for name in SIZES]
    commands.ok(
        "fairseq-preprocess", "-s", "en", "-t", "de", "--joined-dictionary", *files, "--destdir", folder / "bin"
    )
    return folder / "bin"


def share_right(commands: Any, bitext: Path, out: Path, attention: str) -> float:
    """Train for 1,500 updates; the share of the test's words that stand where they should."""
    size = ["--encoder-embed-dim", 64, "--encoder-hidden-size", 64, "--encoder-bidirectional"]
    size += ["--decoder-embed-dim", 64, "--decoder-hidden-size", 128, "--decoder-out-embed-dim", 64]
    flags = ["--arch", "lstm_lmfusion", *size, "--decoder-attention", attention, "--dropout", 0, "--clip-norm", 1]
    commands.ok(*commands.training(out, 1500, *flags, "--lr", 0.003, data=bitext))
    made = commands.ok(*commands.generation(out / "checkpoint_last.pt", "--max-len-b", LONGEST + 10, data=bitext))
    texts = {kind: {} for kind in "TH"}
    for line in made.splitlines():
        if line[:2] in ("T-", "H-"):
            texts[line[0]][line.split("\t")[0][2:]] = line.split("\t")[-1].split()
    assert len(texts["H"]) == SIZES["test"]
    pairs = [(words, texts["H"][number]) for number, words in texts["T"].items()]
    return sum(one == other for words, made in pairs for one, other in zip(words, made)) / (LONGEST * SIZES["test"])


@pytest.mark.slow
def test_words_are_reversed_with_attention_and_hardly_without(commands: Any, bitext: Path, tmp_path: Path) -> None:
    found = {kind: share_right(commands, bitext, tmp_path / kind, kind) for kind in ("general", "none")}
    assert found["general"] > 0.85
    assert 1 / len(WORDS) < found["none"] < 0.6
