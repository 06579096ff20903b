"""CNN and Daily Mail stories in their original format, split by the published lists of addresses.

A .story file has paragraphs, then "@highlight" lines each followed by a highlight, with empty lines between; it is
called by the SHA-1 of its address. See et al. (2017) give the split as lists of addresses.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from tqdm import tqdm  # type: ignore[import-untyped]

from lmfusion.text import textio
from paper_corpora import archives, lines
from paper_corpora.parallel import write_lines
from paper_corpora.sources import Source

MARKER = "¶"
"""Between the sentences of a summary on one line: one token for Moses, kept by BPE and detokenization."""
HIGHLIGHT = "@highlight"
SENTENCE_ENDS = (".", "!", "?", "'", "`", '"', "’", "”", ")")
SIDES = ("article", "summary")


def parse(story: str) -> tuple[list[str], list[str]]:
    """The paragraphs of the article and the highlights of a story; a full stop is added where one is missing."""
    article: list[str] = []
    highlights: list[str] = []
    side = article
    for line in story.split("\n"):
        text = " ".join(line.replace(MARKER, " ").split())
        if text == HIGHLIGHT:
            side = highlights
        elif text:
            side.append(text if text.endswith(SENTENCE_ENDS) else text + ".")
    return article, highlights


def read_split(path: Path, source: Source) -> list[str]:
    """The names of the stories of one split, without their ending.

    Raises:
        DataError: the list has another number of addresses than the table says.
    """
    urls = [url for url in textio.read_lines(path) if url]
    expected = source.counts.get("urls")
    if expected is not None and expected.number != len(urls):
        raise textio.DataError(
            f"{path}: {len(urls):,} addresses instead of {expected.number:,}. Give the list of the paper's split by "
            f"--local {source.name}=PATH."
        )
    return [hashlib.sha1(url.encode(), usedforsecurity=False).hexdigest() for url in urls]


def stories(paths: list[Path]) -> Iterator[tuple[str, str]]:
    """Names without their ending, and texts, of the stories in the archives.

    Raises:
        DataError: an archive is damaged, or a story is not UTF-8.
    """
    for path in paths:
        with archives.damage_named(path):
            for name, stream in archives.members(path):
                if name.endswith(".story"):
                    yield Path(name).stem, archives.read_text(stream, f"{path}: {name}")


class Splits:
    """Writes each story to the files of its split: first in the order of the archives, then in that of the lists."""

    def __init__(self, folder: Path, splits: dict[str, list[str]]) -> None:
        self.folder = folder
        self.splits = splits
        self.split_of = {name: split for split, names in splits.items() for name in names}
        self.position: dict[str, int] = {}
        self.counts: dict[str, Counter[str]] = {split: Counter() for split in splits}

    def _raw(self, split: str, side: str) -> Path:
        return textio.partial_name(self.folder / f"{split}.{side}.unsorted")

    def write(self, archive_paths: list[Path]) -> None:
        """All stories of the lists that have an article and a summary.

        Raises:
            DataError: a story of a list is in no archive.
        """
        raw = {(split, side): self._raw(split, side) for split in self.splits for side in SIDES}
        self.folder.mkdir(parents=True, exist_ok=True)
        try:
            self._write_unsorted(archive_paths, raw)
            for split in self.splits:
                self._check_complete(split)
                self._write_sorted(split)
        finally:
            for path in raw.values():
                path.unlink(missing_ok=True)

    def _write_unsorted(self, archive_paths: list[Path], raw: dict[tuple[str, str], Path]) -> None:
        with ExitStack() as stack:
            files = {key: stack.enter_context(path.open("w", encoding="utf-8")) for key, path in raw.items()}
            style = {"total": len(self.split_of), "unit": " stories", "leave": False, "delay": 5, "disable": None}
            for name, text in tqdm(stories(archive_paths), desc="reading stories", **style):
                split = self.split_of.pop(name, None)
                if split is None:
                    continue
                article, highlights = parse(text)
                if article and highlights:
                    self.position[name] = self.counts[split]["kept"]
                    files[split, "article"].write(" ".join(article) + "\n")
                    files[split, "summary"].write(f" {MARKER} ".join(highlights) + "\n")
                verdict = "kept" if article and highlights else "no_summary" if article else "no_article"
                self.counts[split][verdict] += 1

    def _check_complete(self, split: str) -> None:
        missing = [name for name in self.splits[split] if name in self.split_of]
        if missing:
            raise textio.DataError(
                f"{len(missing):,} of {len(self.splits[split]):,} stories of the list of {split} are in no archive, "
                f"e.g. {missing[0]}.story. Are both archives complete?"
            )

    def _write_sorted(self, split: str) -> None:
        order = np.array([self.position[name] for name in self.splits[split] if name in self.position], dtype=np.int64)
        if not len(order):
            raise textio.DataError(f"the list of {split}: none of its stories has an article and highlights")
        for side in SIDES:
            write_lines(self.folder / f"{split}.{side}", lines.lines_at(self._raw(split, side), order))


def sentences(summary: str) -> list[str]:
    """The sentences of a summary line."""
    return [text.strip() for text in summary.split(MARKER)]
