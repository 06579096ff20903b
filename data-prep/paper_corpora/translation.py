"""The stages that both translation corpora share: bitext and test sets to tokens, symbols and ids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lmfusion.text import binarize, tokenize_text
from lmfusion.text.textio import copy_file
from paper_corpora import ids, parallel, vocabulary
from paper_corpora.parallel import Sides, write_lines
from paper_corpora.stages import Outcome, Stage
from paper_corpora.workspace import Workspace

UNPACKED = 2  # bytes of one pair of languages for a byte of an archive of several, for the plan of the disk space


@dataclass(frozen=True)
class Translation:
    """A translation corpus: where its files come from."""

    corpus: str
    langs: Sides
    bitext: dict[str, Sides]
    """For each source the names of its two sides."""
    test_sets: dict[str, Sides]
    """The same."""
    copies: dict[str, str]
    """Test sets that scores are computed on, under the name of their split: text/test.* is one of them."""
    test_names: dict[str, str]
    """What fairseq calls a test set, in order: test, test1, …; and which it is."""


class Steps:
    """Stages of one translation corpus in one workspace."""

    def __init__(self, workspace: Workspace, translation: Translation) -> None:
        self.workspace = workspace
        self.translation = translation
        self.folder = workspace.folder(translation.corpus)
        self.sources = tuple(workspace.source(name) for name in translation.bitext)
        self.size = UNPACKED * sum(source.size for source in self.sources)

    def path(self, folder: str, name: str) -> Path:
        """A text file of this corpus."""
        return self.folder / folder / name

    def files(self, folder: str, *splits: str) -> tuple[Path, ...]:
        """Both sides of these splits."""
        return tuple(self.path(folder, f"{split}.{lang}") for split in splits for lang in self.translation.langs)

    def stage(
        self, name: str, outputs: tuple[Path, ...], make: Callable[[], Outcome], disk: int, *sources: str
    ) -> Stage:
        """A stage of this corpus."""
        found = tuple(self.workspace.source(source) for source in sources)
        return Stage(self.translation.corpus, name, outputs, make, disk, found)

    def unpack(self, expected: str) -> Stage:
        """The training pairs, raw; `expected` is what the paper says of their number."""

        def make() -> Outcome:
            sides = self.files("text", "bitext")
            pairs = parallel.extract(
                self.workspace, self.translation.bitext, self.translation.langs, (sides[0], sides[1])
            )
            each = ", ".join(f"{name} {number:,}{self.remembered(name, number)}" for name, number in pairs.items())
            return Outcome(f"{sum(pairs.values()):,} pairs ({each}){expected}", {"pairs": pairs})

        return self.stage("text.bitext", self.files("text", "bitext"), make, self.size, *self.translation.bitext)

    def remembered(self, name: str, number: int) -> str:
        """A remark where the table has an estimate that is another number."""
        count = self.workspace.source(name).counts.get("-".join(self.translation.langs))
        if count is None or count.number == number:
            return ""
        return f", about {count.number:,} expected"

    def unpack_test_sets(self) -> Stage:
        """Raw test sets, and which of them fairseq calls how."""
        names = self.translation.test_names

        def make() -> Outcome:
            counts = {}
            for name, sides in self.translation.test_sets.items():
                targets = self.files("text", name)
                langs = self.translation.langs
                counts[name] = parallel.extract_test_set(self.workspace, name, sides, langs, (targets[0], targets[1]))
            for split, name in self.translation.copies.items():
                for raw, copy in zip(self.files("text", name), self.files("text", split)):
                    copy_file(raw, copy)
            write_lines(self.folder / "testsets.tsv", [f"{called}\t{name}" for called, name in names.items()])
            return Outcome(", ".join(f"{name} {number:,}" for name, number in counts.items()) + " sentences", counts)

        outputs = (
            *self.files("text", *self.translation.test_sets, *self.translation.copies),
            self.folder / "testsets.tsv",
        )
        return self.stage("text.newstest", outputs, make, 10_000_000, *self.translation.test_sets)

    def tokenize(self, *splits: str) -> Stage:
        """Moses tokens of these splits."""

        def make() -> Outcome:
            for source, target in zip(self.files("text", *splits), self.files("tok", *splits)):
                tokenize_text.tokenize_file(source, target, source.name.rsplit(".", 1)[1], self.workspace.workers)
            return Outcome("Moses tokens", {})

        return self.stage("tok", self.files("tok", *splits), make, self.size + self.size // 10)

    def encode(self, models: dict[str, Path], *splits: str) -> Stage:
        """BPE symbols of these splits, by the model of each language."""

        def make() -> Outcome:
            for source, target in zip(self.files("tok", *splits), self.files("bpe", *splits)):
                vocabulary.encode(self.workspace, [source], [target], models[source.name.rsplit(".", 1)[1]])
            return Outcome("BPE symbols", {})

        return self.stage("bpe", self.files("bpe", *splits), make, self.size + self.size // 4)

    def pairs(self, bpe: Path, train: str, valid: str, dictionaries: tuple[Path, Path]) -> ids.Pairs:
        """Encoded pairs in a folder, by the names of their splits."""
        source, target = self.translation.langs
        return ids.Pairs(
            langs=self.translation.langs,
            train=(bpe / f"{train}.{source}", bpe / f"{train}.{target}"),
            valid=bpe / valid,
            tests=[bpe / name for name in self.translation.test_names.values()],
            dictionaries=dictionaries,
        )

    def binarize(self, name: str, pairs: ids.Pairs, lines: int | None, disk: int) -> Stage:
        """The first `lines` training pairs (None: all), valid and the test sets for fairseq-train."""

        def make() -> Outcome:
            with binarize.making_folder(self.folder / name) as work:
                return ids.binarize_pairs(self.workspace, work, pairs, lines, self.folder / "logs" / f"{name}.log")

        return self.stage(name, (self.folder / name,), make, disk)
