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
    "src_ft_bert": ("src_elmo_bert",),
}
"""Rows whose script trains models in their own OUT first, and the rows that train the same ones there: two at a time
would be in each other's way."""

DECODED_ONLY = ("tgt_shallow",)
"""Rows that translate with the model of another row and train none."""


EARLIER = {"bilm": "elmo", **{kind: kind for kind in ("recurrent", "causal", "skipgram", "cbow")}}
"""What the names of some source rows end in, and the language model of recipes/pretrain_earlier.sh that they read."""


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
    text: str = "data-prep/debian/en-de"
    """The folder of its text, unless CORPUS names another."""
    shipped: str = "pretrained"
    """The folder of the language models that its rows read, unless PRETRAINED names another."""
    blind: str = ""
    """Its blind test set, a path without the side's ending; it has none where this is empty."""
    settings_of: str = ""
    """The task whose committed choices its rows take where a budget searches; its own where it is empty."""

    @property
    def recipe(self) -> Path:
        """The folder, seen from the repository's root."""
        return Path("recipes") / self.name

    @property
    def corpus(self) -> Path:
        """The folder of its text, as the recipe's script knows it."""
        return Path(os.environ.get("CORPUS", self.text))

    def lines(self, part: str, side: str) -> list[str]:
        """Return a part of the corpus ("valid", "test") on a side; raises as ``read_lines`` does."""
        return read_lines(self.corpus, self._file(part, side))

    def has(self, part: str, side: str) -> bool:
        """Tell whether the corpus has a part on a side."""
        name = self._file(part, side)
        return any((self.corpus / each).is_file() for each in (name, f"{name}.xz"))

    def _file(self, part: str, side: str) -> str:
        return f"{self.train.removesuffix(f'train.{self.sides[0]}')}{part}.{side}"

    def blind_lines(self, side: str) -> list[str]:
        """Return the blind test on a side; raises as ``read_lines`` does."""
        path = Path(f"{self.blind}.{side}")
        return read_lines(path.parent, path.name, "It is part of the repository: git checkout restores it.")

    @property
    def language_models(self) -> Path:
        """The folder of the language models, as the recipe's script knows it."""
        return Path(os.environ.get("PRETRAINED", self.shipped))


TASKS = {
    task.name: task
    for task in (
        Task(
            "debian_ende",
            "English-German, embedded corpus",
            (*TWO, "src_elmo", "src_ft", "tgt_elmo", "tgt_ft", "shared", "shared_bitext_bpe"),
            ("en", "de"),
            "train.en",
            blind="data-prep/debian/blind/help",
        ),
        Task(
            "debian_synopsis",
            "Description to synopsis, embedded corpus",
            (LEAD, *TWO, "src_ft"),
            ("description", "synopsis"),
            "synopsis.train.description",
            sizes=(10000, 0),
        ),
        Task(
            "debian_enfr",
            "English-French, Debian's package descriptions",
            (*TWO, "shared", "lstm", "lstm_src_elmo"),
            ("en", "fr"),
            "train.en",
            sizes=(10000,),
            text="runs/en-fr",
            shipped="runs/en-fr-lm",
            settings_of="debian_ende",
        ),
    )
}


def has_no_training(row: str) -> bool:
    """Whether a row learns nothing: one run is all there is of it."""
    return row == LEAD


def representation(row: str) -> bool:
    """Whether a row reads a language model's states, and so has a dropout of its own to be chosen."""
    return row.removeprefix("lstm_").startswith(("src_", "tgt_"))


def without_back_translation(row: str) -> str:
    """Return what a row's name begins with beside back-translation: that of the row without it."""
    return row.removeprefix("back_translation_")


def earlier_lm(row: str) -> str:
    """Return the kind of the language model that pretrain_earlier.sh makes for a row; empty where it reads none."""
    return EARLIER.get(row.rpartition("_")[2], "") if row.startswith("src_") else ""


OF_A_CORPUS = "Set CORPUS to a corpus folder; data-prep/debian makes some."


def read_lines(folder: Path, name: str, fix: str = OF_A_CORPUS) -> list[str]:
    """Read a file, which may be compressed, as data-prep does: every white space in a line is one space.

    Args:
        folder: where it lies.
        name: of the file, without .xz.
        fix: what to do where there is none.

    Raises:
        InputError: there is none.
    """
    plain, packed = folder / name, folder / f"{name}.xz"
    if plain.is_file():
        content = plain.read_bytes()
    elif packed.is_file():
        content = lzma.decompress(packed.read_bytes())
    else:
        raise InputError(f"{plain}: no such file, nor {packed.name}. {fix}")
    lines = content.decode("utf-8").removesuffix("\n").split("\n")  # splitlines() would end lines at U+2028 as well
    return [" ".join(line.split()) for line in lines]


def count_pairs(task: Task) -> int:
    """The number of training pairs there are."""
    return len(read_lines(task.corpus, task.train))
