"""The text of a planned training: its dictionaries and how much of it there is."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import MMapIndexedDataset
from numpy.typing import NDArray

from lmfusion.checkpoint.finding import folders_with, instead
from lmfusion.errors import InputError
from lmfusion.text.data_table import read_sizes
from lmfusion.text.textio import DataError

SOURCE, TARGET = "src", "tgt"
_WIDE_IDS = 65500  # symbols from which on fairseq-preprocess writes 4 bytes a token rather than 2


@dataclass(frozen=True)
class Text:
    """Hold how much text there is, of one side.

    Attributes:
        folder: with the dictionaries, as fairseq takes it; shards are joined by colons.
        languages: source and target; None: text of one language.
        tokens: of the training text (of the target side); None: not known.
        sentences: of the training text.
        sides: number of texts, 2 for sentence pairs.
        shards: number of folders.
    """

    folder: str
    languages: tuple[str, str] | None
    tokens: int | None
    sentences: int | None
    sides: int
    shards: int


def made_up(folder: Path, types: int, tokens: int | None, length: int, symbols: dict[str, list[str]]) -> Text:
    """Write dictionaries of made-up words, by which fairseq builds a model of that size.

    Args:
        folder: to write them into.
        types: vocabulary size, fairseq's four special symbols included.
        tokens: of the text, or None.
        length: mean tokens of a sentence.
        symbols: by side, those of a language model's file that has to know its side's dictionary.
    """
    if types < 5:
        raise InputError(f"--types {types}: give the number of symbols of the dictionary, 5 or more.")
    plain = _dictionary(f"w{number}" for number in range(types - 4))
    plain.save(str(folder / "dict.txt"))
    for side in (SOURCE, TARGET):
        own = symbols.get(side)
        (_dictionary(own[4:]) if own else plain).save(str(folder / f"dict.{side}.txt"))
    sentences = None if tokens is None else max(1, tokens // length)
    return Text(str(folder), (SOURCE, TARGET), tokens, sentences, 2, 1)


def _dictionary(words: Iterable[str]) -> Dictionary:
    dictionary = Dictionary()
    for word in words:
        dictionary.add_symbol(word)
    return dictionary


def prepared(data: str, target: str | None = None) -> Text:
    """Read how much text prepared folders hold, from their indices alone.

    Args:
        data: a folder that fairseq-preprocess made, or several (shards) joined by colons.
        target: language that pairs are translated into; None: the second of their names.

    Raises:
        InputError: if a folder has no training text, or one that is damaged or empty.
    """
    folders = [Path(name) for name in data.split(":") if name]
    tokens = sentences = 0
    languages: tuple[str, str] | None = None
    for folder in folders:
        found = sorted(path.with_suffix("") for path in (*folder.glob("train.idx"), *folder.glob("train.*.idx")))
        if not found or not MMapIndexedDataset.exists(str(found[-1])):
            fix = instead(folders_with(folder, "train*.idx"), "what fairseq-preprocess made")
            raise InputError(f"{folder} has no training text (train*.idx): give {fix}.")
        parts = found[-1].name.split(".")
        if len(parts) > 1:
            first, _, second = parts[1].partition("-")
            languages = (second, first) if target == first else (first, second)
            found = [folder / f"train.{parts[1]}.{languages[1]}"]
        for index in _indices(found[-1]):
            sizes = _sizes(index)
            tokens, sentences = tokens + int(sizes.sum()), sentences + len(sizes)
    if not folders:
        raise InputError("--data names no folder: give what fairseq-preprocess made.")
    return Text(data, languages, tokens, sentences, 2 if languages else 1, len(folders))


def _indices(first: Path) -> Iterator[Path]:
    """Yield the indices that fairseq reads as one text: of train, then train1, train2 … up to the first that lacks."""
    rest = first.name.removeprefix("train")
    yield first.with_name(f"train{rest}.idx")
    for number in count(1):
        index = first.with_name(f"train{number}{rest}.idx")
        if not index.is_file():
            return
        yield index


def _sizes(index: Path) -> NDArray[np.int32]:
    """Return the tokens of each sentence; fairseq's own reader fails in many ways, and prints some of them."""
    with suppress(OSError, DataError):
        return read_sizes(index)
    raise InputError(f"{index} is no index of fairseq's format mmap, or is damaged or empty: make the data again.")


def binarized_bytes(text: Text, types: int, sides: int) -> int | None:
    """Return the bytes of the text's ``*.bin`` and ``*.idx``, every side as long as the one that was counted."""
    if text.tokens is None or text.sentences is None:
        return None
    return sides * (text.tokens * (2 if types < _WIDE_IDS else 4) + text.sentences * 12)
