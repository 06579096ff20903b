"""What a run works with: its folder, the sources, and the sizes of the chosen scale."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from lmfusion.text import tokenize_text
from paper_corpora.fetch import Downloads
from paper_corpora.sources import Source

SUBSETS = {"160K": 160_000, "320K": 320_000, "640K": 640_000, "1280K": 1_280_000, "2560K": 2_560_000}
WHOLE_BITEXT = "5186K"
SUBSET_NAMES = (*SUBSETS, WHOLE_BITEXT)


@dataclass(frozen=True)
class Scale:
    """All sizes that --scale changes; nothing else differs."""

    joint_bpe: int
    """Symbols of the BPE of English and German (paper: 37K types)."""
    turkish_bpe: int
    """Paper: 32K merges."""
    summary_bpe: int
    """Paper: 32K types."""
    bitext_bpe: int
    """Symbols of the joint BPE learned on a bitext subset."""
    bpe_sample: int
    """Sentences of each language that a BPE is learned on."""
    held_out_mono: int
    """Sentences a language model is validated on."""
    held_out_pairs: int
    """Sentence pairs that en-de models are validated on."""
    pairs_per_thousand: float
    """Pairs that a thousand of a subset's name stands for."""

    def subset(self, name: str) -> int | None:
        """Pairs of the subset called `name`; None: all there are."""
        return None if name == WHOLE_BITEXT else max(1, round(SUBSETS[name] / 1000 * self.pairs_per_thousand))


SCALES = {
    "full": Scale(37_000, 32_000, 32_000, 37_000, 2_500_000, 10_000, 3_000, 1000),
    "tiny": Scale(600, 300, 500, 300, 500, 20, 20, 0.1),
}


@dataclass(frozen=True)
class Workspace:
    """A folder DATA, and with what it is filled."""

    data: Path
    scale: Scale
    sources: dict[str, Source]
    seed: int = 1
    workers: int | None = None

    @property
    def downloads(self) -> Downloads:
        """DATA/downloads, as its record stands now."""
        return Downloads(self.data / "downloads")

    def settings(self) -> dict[str, Any]:
        """What makes two preparations the same."""
        return {"scale": asdict(self.scale), "seed": self.seed, "tokenizer": tokenize_text.tokenizer_flags()}

    def folder(self, corpus: str) -> Path:
        """The folder of one corpus."""
        return self.data / corpus

    def source(self, name: str) -> Source:
        """A row of the table."""
        return self.sources[name]

    def path(self, name: str) -> Path:
        """Where the file of a source is."""
        return self.downloads.path(self.sources[name])
