"""Run folders whose scores are those of their outputs, and what is more than chance between them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from lmfusion.report.page.bootstrap import Bootstrap
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.notices import Notices
from lmfusion.report.page.score_tables import score_tables
from lmfusion.report.page.significance import Significance, examine, verdict
from lmfusion.report.page.texts import find_texts
from lmfusion.report.verdict import Verdict
from lmfusion.runs import provenance
from lmfusion.scoring import bleu

WORDS = "Haus Baum Vogel Katze Hund Stadt Fluss Berg Tal Weg Licht Regen Wind Schnee Stein Brot".split()


@dataclass
class Examined:
    """A comparison, and its tests."""

    comparison: Comparison
    significance: Significance

    def verdict(self, size: int = 2500) -> Verdict | None:
        """What is said of a bitext size."""
        return verdict(self.comparison, size, self.significance)

    def bold(self) -> list[str]:
        """The scores in bold, of the first table."""
        table = score_tables(self.comparison, self.significance)[0]
        return [cell.text for row in table.rows for cell in row if cell.best]


@dataclass
class Systems:
    """Adds systems to a folder of runs, and compares them."""

    maker: Any
    compared: Any
    count: int = 60
    """Sentences of the test set."""

    def sentences(self, seed: int) -> list[str]:
        """As many sentences of twelve words as the test set has."""
        chosen = random.Random(seed)
        return [" ".join(chosen.choices(WORDS, k=12)) for _ in range(self.count)]

    @property
    def references(self) -> list[str]:
        """The test set."""
        return self.sentences(1)

    def damaged(self, words: int, seed: int = 2) -> list[str]:
        """The references with the last so many words of every sentence replaced."""
        pairs = zip(self.references, self.sentences(seed))
        return [" ".join(mine.split()[: 12 - words] + other.split()[12 - words :]) for mine, other in pairs]

    def score(self, words: int) -> float:
        """The BLEU of references damaged so much."""
        return bleu.score(self.damaged(words), self.references).bleu

    def add(self, name: str, strategy: str, output: Sequence[str] | int, metric: str = "bleu", **facts: Any) -> Path:
        """A run folder whose score and texts are those of this output, or of references damaged so much."""
        lines = self.damaged(output) if isinstance(output, int) else output
        reference = self.maker.folder / "reference"
        self.maker.folder.mkdir(parents=True, exist_ok=True)
        reference.write_text("".join(f"{line}\n" for line in self.references), encoding="utf-8")
        value = bleu.score(lines, self.references).bleu
        entry = self.maker.bleu(value) if metric == "bleu" else self.maker.rouge(*[value / 100] * 3)
        entry = {**entry, "reference": str(reference), "reference_sha256": provenance.hash_file(reference)}
        entry["summaries" if metric == "rouge" else "sentences"] = self.count
        path: Path = self.maker.run(name, strategy, scores={"test": entry}, **facts)
        (path / "test.hyp").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    def examined(self, bootstrap: Bootstrap | None = None) -> Examined:
        """The comparison of all runs made so far, and its tests."""
        ((comparison,), _) = self.compared(self.maker.folder)
        texts = find_texts(comparison, None, None, Notices())
        return Examined(comparison, examine(comparison, texts, bootstrap or Bootstrap(None)))


@pytest.fixture
def systems(maker, compared) -> Systems:
    """Systems in a folder of the test's own."""
    return Systems(maker, compared)
