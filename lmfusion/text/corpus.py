"""A corpus folder: parallel text and monolingual text, checked and unpacked.

    train.en train.de valid.* test.*     parallel, line by line
    mono.train.en mono.valid.en …        one sentence a line

More monolingual text for the language models may come from a second folder, as mono.more.en … (debian/more_text.py).
Each file may be compressed (.xz, .gz). A folder may hold other parallel text beside it, under names with a prefix:
synopsis.train.description synopsis.train.synopsis ….
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from lmfusion.text import textio

SUFFIXES = ("", ".xz", ".gz")
BITEXT_SPLITS = ("train", "valid", "test")
MONO_SPLITS = ("train", "valid")


@dataclass(frozen=True)
class Corpus:
    """Describe where a corpus is, its languages, and which of its files are wanted."""

    folder: Path
    source_lang: str
    target_lang: str
    lm_langs: tuple[str, ...]
    mono_langs_for_bpe: tuple[str, ...]
    prefix: str = ""
    """Of the parallel files' names in the folder; everything made of them is named without it."""
    text_lang: str | None = None
    """The language of both sides, where these are not named by languages."""
    more_text: Path | None = None
    """Folder of mono.more.en …, which language models train on as well."""

    def bitext_names(self) -> list[str]:
        """Return the names of the parallel files."""
        langs = (self.source_lang, self.target_lang)
        return [f"{split}.{lang}" for split in BITEXT_SPLITS for lang in langs]

    def mono_names(self) -> list[str]:
        """Return the names of the monolingual files a language model or the BPE needs."""
        return sorted({*self.lm_names(), *(f"mono.train.{lang}" for lang in self.mono_langs_for_bpe)})

    def lm_names(self) -> list[str]:
        """Return the names of the files the language models train and validate on."""
        return [name for lang in self.lm_langs for split in MONO_SPLITS for name in self.lm_text(lang, split)]

    def lm_text(self, lang: str, split: str) -> list[str]:
        """Return the names of the files that together are one language model's text of one split."""
        more = [f"mono.more.{lang}"] if self.more_text and split == "train" else []
        return [f"mono.{split}.{lang}", *more]

    def names(self) -> list[str]:
        """Return all files wanted."""
        return self.bitext_names() + self.mono_names()

    def find(self, name: str) -> Path:
        """Return the file called `name`, compressed or not.

        Raises:
            DataError: there is none.
        """
        file = self.file_name(name)
        folder = self.more_text if self.more_text and name.startswith("mono.more.") else self.folder
        candidates = [folder / (file + suffix) for suffix in SUFFIXES]
        for path in candidates:
            if path.is_file():
                return path
        if folder != self.folder:
            raise textio.DataError(f"{folder / file}: no such file. data-prep/debian/more_text.py makes such folders.")
        raise textio.DataError(
            f"{folder / file}: no such file (looked for {file}, {file}.xz, {file}.gz). The "
            f"corpus folder needs {', '.join(map(self.file_name, self.names()))}."
        )

    def file_name(self, name: str) -> str:
        """Return what the file `name` is called in the folder."""
        return f"{self.prefix}.{name}" if self.prefix and name in self.bitext_names() else name

    def language(self, name: str) -> str:
        """Return the language of the text in the file `name`."""
        last = name.rsplit(".", 1)[1]
        return self.text_lang or last if name in self.bitext_names() else last

    def hashes(self) -> dict[str, str]:
        """Return the SHA-256 of every file wanted, as it lies in the folder.

        Raises:
            DataError: a file is missing.
        """
        return {name: file_hash(self.find(name)) for name in self.names()}


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def clean_lines(path: Path) -> Iterator[str]:
    """Yield lines with every kind of white space made one space, so that all readers agree what a line is.

    Raises:
        DataError: see `textio.read_lines`; or the file holds no text.
    """
    empty = True
    for line in textio.read_lines(path):
        words = line.split()
        empty = empty and not words
        yield " ".join(words)
    if empty:
        raise textio.DataError(f"{path}: empty file. It needs one sentence a line.")


def unpack(source: Path, target: Path) -> int:
    """Write a corpus file as clean, uncompressed UTF-8; return its number of lines.

    Raises:
        DataError: see `clean_lines`.
        OSError: `target` cannot be written.
    """
    count = 0
    with textio.writing(target) as stream:
        for count, line in enumerate(clean_lines(source), start=1):  # noqa: B007
            stream.write(line + "\n")
    return count


def check_parallel(corpus: Corpus, text: Path) -> None:
    """Check that both sides of each split in folder `text` belong together.

    Raises:
        DataError: unequal numbers of lines, or a one-sided pair where pairs are not dropped.
    """
    for split in BITEXT_SPLITS:
        names = [f"{split}.{lang}" for lang in (corpus.source_lang, corpus.target_lang)]
        counts = [textio.count_lines(text / name) for name in names]
        source, target = (corpus.find(name) for name in names)
        if counts[0] != counts[1]:
            raise textio.DataError(
                f"{source} has {counts[0]:,} lines but {target} has {counts[1]:,}: the two sides "
                f"must have the same number. Is one of them cut short?"
            )
        if split != "train":
            _check_no_empty_side(text / names[0], text / names[1], source, target)


def _check_no_empty_side(source_text: Path, target_text: Path, source: Path, target: Path) -> None:
    pairs = zip_longest(textio.read_lines(source_text), textio.read_lines(target_text))
    for number, (left, right) in enumerate(pairs, start=1):
        if not left or not right:
            raise textio.DataError(
                f"{target if left else source}, line {number}: empty. Take the pair out of both "
                f"files (pairs with an empty side are dropped by themselves only in train)."
            )
