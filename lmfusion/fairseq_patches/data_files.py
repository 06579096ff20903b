"""Dictionaries, binarized texts and BPE models as fairseq reads them: a damaged one is refused in one line.

fairseq ends in a traceback, in the middle of an epoch, or in a GPU's assertion without a name.
"""

from __future__ import annotations

import itertools
from collections.abc import Sized
from pathlib import Path
from typing import Any, Callable

import numpy as np
from fairseq.data import Dictionary, data_utils
from fairseq.data.encoders.sentencepiece_bpe import SentencepieceBPE
from fairseq.data.indexed_dataset import _code_to_dtype

from lmfusion.errors import UserError

_MAGIC = b"MMIDIDX\x00\x00" + (1).to_bytes(8, "little")  # and the version
_OTHER_FORMATS = (b"TNTIDX", b"HUFFIDX")
_HEADER = 26  # bytes: that, the type of numbers, how many sentences
_AT_ONCE = 1 << 24  # token ids


def check_binarized(path: str, dictionary: Sized | None) -> None:
    """Refuse a pair of files PATH.idx and PATH.bin that do not go together or with the dictionary.

    Whether a token is the right one cannot be seen: the format has no check sums.

    Args:
        path: without ending; files of other formats, and missing ones, are left to fairseq.
        dictionary: of the text.

    Raises:
        UserError: naming the file and the mend.
    """
    index, data = Path(f"{path}.idx"), Path(f"{path}.bin")
    if not index.is_file() or not data.is_file():
        return
    with index.open("rb") as stream:
        header = stream.read(_HEADER)
    if header.startswith(_OTHER_FORMATS):
        return
    kind = _code_to_dtype.get(header[17]) if len(header) == _HEADER else None
    count = int.from_bytes(header[18:], "little")
    if header[:17] == _MAGIC and kind is not None and count == 0:
        raise UserError(f"{index} has no sentence: prepare it again from a text that has one (fairseq-preprocess).")
    if header[:17] != _MAGIC or kind is None or index.stat().st_size != _HEADER + count * 12:
        raise UserError(f"{index} is cut or damaged: prepare the data again (fairseq-preprocess).")
    sizes = np.fromfile(index, np.int32, count, offset=_HEADER).astype(np.int64)
    starts = np.fromfile(index, np.int64, count, offset=_HEADER + count * 4)
    width = np.dtype(kind).itemsize
    ends = np.cumsum(sizes) * width
    if (sizes < 0).any() or not np.array_equal(starts, ends - sizes * width):
        raise UserError(f"{index} is damaged: prepare the data again (fairseq-preprocess).")
    if data.stat().st_size != ends[-1]:
        raise UserError(f"{data} is not as long as {index.name} says: prepare the data again (fairseq-preprocess).")
    if dictionary is not None:
        _check_ids(data, np.memmap(data, kind, "r"), len(dictionary))


def _check_ids(data: Path, ids: Any, symbols: int) -> None:
    for start in range(0, len(ids), _AT_ONCE):
        part = ids[start : start + _AT_ONCE]
        if part.min() < 0 or part.max() >= symbols:
            wrong = int(part.max() if part.max() >= symbols else part.min())
            raise UserError(
                f"{data} has a token of number {wrong:,}, and its dictionary has {symbols:,} symbols: it is damaged, "
                f"or dict.*.txt is another one's. Prepare the data again (fairseq-preprocess)."
            )


def install() -> None:
    """Make fairseq check; safe to call again."""
    if getattr(data_utils.load_indexed_dataset, "checks", False):
        return
    _check_texts()
    _check_dictionaries()
    _check_bpe()


def _check_texts() -> None:
    original: Callable[..., Any] = data_utils.load_indexed_dataset

    def load_indexed_dataset(
        path: str, dictionary: Any = None, dataset_impl: Any = None, combine: bool = False, **kwargs: Any
    ) -> Any:
        """fairseq's, of files that are whole; combined: of PATH, PATH1, PATH2 and so on."""
        check_binarized(path, dictionary)
        parts = (f"{path}{number}" for number in itertools.count(1))
        for part in itertools.takewhile(lambda part: Path(f"{part}.idx").is_file(), parts if combine else ()):
            check_binarized(part, dictionary)
        return original(path, dictionary, dataset_impl, combine, **kwargs)

    load_indexed_dataset.checks = True  # type: ignore[attr-defined]
    data_utils.load_indexed_dataset = load_indexed_dataset


def _check_dictionaries() -> None:
    original: Callable[..., Any] = Dictionary.add_from_file

    def add_from_file(self: Dictionary, f: Any) -> None:
        """fairseq's, of a file in UTF-8 with a symbol and a count on every line."""
        if not isinstance(f, str):
            original(self, f)
            return
        try:
            with open(f, encoding="utf-8") as stream:
                original(self, stream)
        except (ValueError, RuntimeError) as error:
            reason = str(error).strip().split("\n")[0][:200]
            raise UserError(
                f"{f} is no dictionary of fairseq, a symbol and its count on every line ({reason}): prepare the data "
                f"again, or copy the dictionary it was prepared with."
            ) from error

    Dictionary.add_from_file = add_from_file


def _check_bpe() -> None:
    original: Callable[..., Any] = SentencepieceBPE.__init__

    def init(self: SentencepieceBPE, cfg: Any) -> None:
        """fairseq's, of a model that sentencepiece can read."""
        try:
            original(self, cfg)
        except (RuntimeError, OSError, TypeError) as error:
            raise UserError(
                f"--sentencepiece-model {cfg.sentencepiece_model} cannot be read as a sentencepiece model "
                f"({str(error).strip().splitlines()[0][:200]}): give the spm.model the data was prepared with."
            ) from error

    SentencepieceBPE.__init__ = init
