"""What a recipe folder offers to a study: its rows, its corpus, how it is scored."""

from __future__ import annotations

import lzma
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lmfusion.errors import InputError

LEAD = "lead"
TWO = ("baseline", "src_elmo_shdemb")
"""The rows that a report has before all others: the question, in short."""

AFTER: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("src_attend_second", "tgt_deep_second", "tgt_shallow", "self_training"), ("baseline",)),
    "distill": ("baseline", "src_elmo_shdemb"),
    "back_translation_src_elmo_shdemb": ("back_translation",),
}
"""Rows whose script trains models in their own OUT first, and the rows that train the same ones there: two at a time
would be in each other's way."""


@dataclass(frozen=True)
class Task:
    """A recipe folder."""

    name: str
    title: str
    rows: tuple[str, ...]
    """Every row that a study runs, the most telling first; names of scripts."""
    sides: tuple[str, str]
    train: str
    """The training pairs' source side in the corpus."""
    sizes: tuple[int, ...] = ()
    """Bitext sizes of its studies where they are not those of the budget; 0 for all pairs."""

    @property
    def recipe(self) -> Path:
        """The folder, seen from the repository's root."""
        return Path("recipes") / self.name


TASKS = {
    task.name: task
    for task in (
        Task(
            "debian_ende",
            "English-German, embedded corpus",
            (*TWO, "src_elmo", "src_ft", "tgt_elmo", "tgt_ft", "shared", "shared_bitext_bpe"),
            ("en", "de"),
            "train.en",
        ),
        Task(
            "debian_synopsis",
            "Description to synopsis, embedded corpus",
            (LEAD, *TWO, "src_ft"),
            ("description", "synopsis"),
            "synopsis.train.description",
            sizes=(10000, 0),
        ),
    )
}


def has_no_training(row: str) -> bool:
    """Whether a row learns nothing: one run is all there is of it."""
    return row == LEAD


def representation(row: str) -> bool:
    """Whether a row reads a language model's states, and so has a dropout of its own to be chosen."""
    return row.removeprefix("lstm_").startswith(("src_", "tgt_"))


def corpus_folder() -> Path:
    """The corpus, as the recipes know it."""
    return Path(os.environ.get("CORPUS", "data-prep/debian/en-de"))


def read_lines(corpus: Path, name: str) -> list[str]:
    """A file of the corpus, which may be compressed, as data-prep reads it: every white space in a line is one space.

    Raises:
        InputError: there is none.
    """
    plain, packed = corpus / name, corpus / f"{name}.xz"
    if plain.is_file():
        content = plain.read_bytes()
    elif packed.is_file():
        content = lzma.decompress(packed.read_bytes())
    else:
        raise InputError(f"{plain}: no such file, nor {packed.name}. Set CORPUS to a corpus folder.")
    lines = content.decode("utf-8").removesuffix("\n").split("\n")  # splitlines() would end lines at U+2028 as well
    return [" ".join(line.split()) for line in lines]


def count_pairs(task: Task, corpus: Path) -> int:
    """The number of training pairs there are."""
    return len(read_lines(corpus, task.train))
