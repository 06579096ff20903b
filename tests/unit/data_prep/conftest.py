"""data-prep/ is a folder of scripts, not a package: put it on the path for its tests, and make a small corpus."""

from __future__ import annotations

import random
import sys
from pathlib import Path

import pytest

DATA_PREP = Path(__file__).parents[3] / "data-prep"
sys.path.insert(0, str(DATA_PREP))

SYLLABLES = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "so", "tü", "wä", "ze")


def sentences(count: int, seed: int) -> list[str]:
    """Made-up sentences with punctuation."""
    rng = random.Random(seed)

    def word() -> str:
        return "".join(rng.choices(SYLLABLES, k=rng.randint(1, 3)))

    return [f"{word().title()} {word()}-{word()}, {word()} ({word()}) don't {word()}." for _ in range(count)]


@pytest.fixture
def corpus_folder(tmp_path: Path) -> Path:
    """A corpus folder as prepare.py wants it, uncompressed."""
    folder = tmp_path / "corpus"
    folder.mkdir()
    sizes = {"train": 300, "valid": 20, "test": 20, "mono.train": 400, "mono.valid": 30}
    for number, (split, size) in enumerate(sizes.items()):
        for shift, lang in enumerate(("en", "de")):
            text = "\n".join(sentences(size, 10 * number + shift))
            (folder / f"{split}.{lang}").write_text(text + "\n", encoding="utf-8")
    return folder
