"""Check that binarized texts (``*.idx``, ``*.bin``) are whole and belong to their dictionaries."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fairseq.data import Dictionary
from fairseq.data.indexed_dataset import _code_to_dtype

from lmfusion.checkpoint.finding import folders_with, instead
from lmfusion.errors import InputError
from lmfusion.text.data_table import INDEX_HEADER, INDEX_MARK
from lmfusion.text.dictionaries import read_dictionary

_AT_ONCE = 1 << 24  # token ids
_AGAIN = "prepare the data again (fairseq-preprocess)"


@dataclass(frozen=True)
class Text:
    """A binarized text that was read and found whole.

    Attributes:
        name: of its files, without ending: ``train.en-de.en``, or ``train`` of a language model's.
        dictionary: the name of its dictionary's file.
        sentences: number of sentences.
        tokens: number of tokens, each sentence's closing symbol included.
    """

    name: str
    dictionary: str
    sentences: int
    tokens: int


def check_folder(folder: Path) -> list[Text]:
    """Check every text in a folder against its dictionary, reading all of it.

    Args:
        folder: that fairseq-preprocess made. Texts in other formats than its default, mmap, are refused.

    Returns:
        The texts, in order of their names.

    Raises:
        InputError: if there is no text, or a file is missing, damaged or belongs to another dictionary.
    """
    stems = sorted({path.with_suffix("") for ending in (".idx", ".bin") for path in folder.glob(f"*{ending}")})
    if not stems:
        fix = instead(folders_with(folder, "*.idx"), "the folder that fairseq-preprocess made")
        raise InputError(f"{folder} has no binarized text (*.idx): give {fix}.")
    dictionaries: dict[str, Dictionary] = {}
    texts = []
    for stem in stems:
        name = f"dict.{language}.txt" if (language := _language(stem)) else "dict.txt"
        if name not in dictionaries:
            dictionaries[name] = read_dictionary(folder / name)
        sentences, tokens = check_binarized(stem, dictionaries[name])
        texts.append(Text(stem.name, name, sentences, tokens))
    _check_pairs(folder, texts)
    return texts


def _language(stem: Path) -> str | None:
    """Return the language in a file name without its ending: en for train.en-de.en, None for train."""
    parts = stem.name.split(".")
    return parts[-1] if len(parts) > 1 else None


def _check_pairs(folder: Path, texts: Sequence[Text]) -> None:
    """Refuse the two sides of a text, train.en-de.en and train.en-de.de, that differ in their number of sentences."""
    sides: dict[str, Text] = {}
    for text in texts:
        pair, _, language = text.name.rpartition(".")
        if language not in pair.rpartition(".")[2].split("-"):
            continue
        other = sides.setdefault(pair, text)
        if other.sentences != text.sentences:
            raise InputError(
                f"{folder}: {other.name} has {other.sentences:,} sentences and {text.name} {text.sentences:,}, so that "
                f"they are no pairs: {_AGAIN}."
            )


def check_binarized(path: Path, dictionary: Sized) -> tuple[int, int]:
    """Refuse a pair of files PATH.idx and PATH.bin that do not go together or with the dictionary.

    A wrong token within the vocabulary goes unnoticed: the format has no check sums.

    Args:
        path: of both files, without ending.
        dictionary: the text's; only its size is used.

    Returns:
        The number of its sentences and of its tokens.

    Raises:
        InputError: naming the file and the fix.
    """
    index, data = Path(f"{path}.idx"), Path(f"{path}.bin")
    if not index.is_file():
        raise InputError(f"{index} is missing beside {data.name}: {_AGAIN}.")
    with index.open("rb") as stream:
        header = stream.read(INDEX_HEADER)
    kind = _code_to_dtype.get(header[17]) if len(header) == INDEX_HEADER else None
    count = int.from_bytes(header[18:], "little")
    if header[:17] != INDEX_MARK or kind is None or index.stat().st_size != INDEX_HEADER + count * 12:
        raise InputError(f"{index} is cut or damaged, or of another format than mmap: {_AGAIN}.")
    if count == 0:
        raise InputError(f"{index} has no sentence: prepare it again from a text that has one (fairseq-preprocess).")
    sizes = np.fromfile(index, np.int32, count, offset=INDEX_HEADER).astype(np.int64)
    starts = np.fromfile(index, np.int64, count, offset=INDEX_HEADER + count * 4)
    width = np.dtype(kind).itemsize
    ends = np.cumsum(sizes) * width
    if (sizes < 0).any() or not np.array_equal(starts, ends - sizes * width):
        raise InputError(f"{index} is damaged: {_AGAIN}.")
    if not data.is_file() or data.stat().st_size != ends[-1]:
        raise InputError(f"{data} is not as long as {index.name} says: {_AGAIN}.")
    _check_ids(data, kind, len(dictionary))
    return count, int(sizes.sum())


def _check_ids(data: Path, kind: type, symbols: int) -> None:
    if not data.stat().st_size:
        return
    ids = np.memmap(data, kind, "r")
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        if part.min() < 0 or part.max() >= symbols:
            wrong = int(part.max() if part.max() >= symbols else part.min())
            raise InputError(
                f"{data} has a token of number {wrong:,}, and its dictionary has {symbols:,} symbols: it is damaged, "
                f"or the dictionary is another one's. P{_AGAIN[1:]}."
            )
