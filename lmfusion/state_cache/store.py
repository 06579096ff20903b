"""Store the layer states of sentences on disk, by key.

A store is a folder of parts. Every process writes a part of its own and reads all: ``NAME.states`` holds the states of
one sentence behind the other (L x T x C' each), ``NAME.index`` a record for every sentence that is complete in it. A
record is written after its states, so a process killed between the two loses a sentence and damages nothing; and it
has their check sum, so that a bit flipped on the disk is noticed.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from lmfusion.errors import NO_SPACE, InputError
from lmfusion.text.json_text import parse

_RECORD = np.dtype([("key", "S32"), ("start", "<i8"), ("tokens", "<i8"), ("sum", "<u4")])
FORMAT = 3  # of parts and their description; other formats lie in other folders
_TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}
_STATES, _INDEX, _ABOUT = ".states", ".index", "about.json"


@dataclass
class _Part:
    """The files of one process, as far as they have been read."""

    states: Path
    index: Path
    records_read: int = 0
    descriptor: int | None = None

    def read_into(self, start: int, buffer: Tensor, check_sum: int) -> None:
        """Fill a tensor with the bytes from ``start`` on."""
        if self.descriptor is None:
            try:
                self.descriptor = os.open(self.states, os.O_RDONLY)
            except FileNotFoundError as error:
                raise InputError(
                    f"{self.states} is gone, while its index was read: do not delete stored states while training. "
                    f"Start the run again; what is missing will be computed again."
                ) from error
        view = buffer.view(torch.uint8).flatten().numpy().data
        if os.preadv(self.descriptor, [view], start) != len(view) or zlib.crc32(view) != check_sum:
            raise InputError(
                f"{self.states} is damaged or shorter than its index says: delete the folder {self.states.parent}, "
                f"whose content will be computed again."
            )

    def size(self) -> int:
        """Return the bytes of states in the file."""
        return self.states.stat().st_size if self.states.exists() else 0


@dataclass(frozen=True)
class _About:
    """A store's description: L, C', the types stored and computed, and all settings that determine the numbers."""

    states: int
    channels: int
    stored: str
    computed: str
    settings: dict[str, Any]


@contextmanager
def _needing_space(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise InputError(
            f"no space left for the stored states in {folder}: make room, or train without --src-lm-cache. What is "
            f"stored stays of use."
        ) from error


class StateStore:
    """A folder with the layer states of sentences, which several processes may fill.

    Args:
        folder: of an existing store; :meth:`create` makes one.
        shape: L and C'.
        settings: all that determines the numbers, as plain values: the LM, the precision.

    Raises:
        InputError: if its description cannot be read, or is one of other settings.
    """

    def __init__(self, folder: Path, shape: tuple[int, int], settings: dict[str, Any]) -> None:
        self.folder, self.shape = folder, shape
        try:
            about = _About(**parse((folder / _ABOUT).read_text(encoding="utf-8")))
            self.dtype, self.computed = _TYPES[about.stored], _TYPES[about.computed]
            if (about.states, about.channels) != shape:
                raise ValueError(f"states of {about.states} x {about.channels}")
        except (ValueError, TypeError, LookupError) as error:
            raise InputError(f"{folder / _ABOUT} is damaged: delete the folder {folder}.") from error
        if about.settings != json.loads(json.dumps(settings)):
            raise InputError(
                f"{folder} holds other states than its name says: {_difference(about.settings, settings)}. It was "
                f"renamed or copied here: move it away or delete it, and the states will be computed."
            )
        self._places: dict[bytes, tuple[_Part, int, int, int]] = {}
        self._parts: dict[str, _Part] = {}
        self._own: tuple[Any, Any] | None = None
        self.refresh()

    @classmethod
    def create(
        cls,
        folder: Path,
        shape: tuple[int, int],
        stored: torch.dtype,
        computed: torch.dtype,
        settings: dict[str, Any],
    ) -> StateStore:
        """Make a store, or open the one that another process has just made.

        Args:
            folder: of the store.
            shape: L and C'.
            stored: type of the numbers on disk.
            computed: type in which the LM gives them.
            settings: as of the class.

        Raises:
            InputError: if there is no space left.
        """
        names = (str(dtype).removeprefix("torch.") for dtype in (stored, computed))
        about = _About(*shape, next(names), next(names), settings)
        with _needing_space(folder):
            folder.mkdir(parents=True, exist_ok=True)
            scratch = folder / f"{_ABOUT}.{secrets.token_hex(4)}"
            scratch.write_text(json.dumps(asdict(about)), encoding="utf-8")
            scratch.replace(folder / _ABOUT)
        return cls(folder, shape, settings)

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Return True if there is a store in a folder."""
        return (folder / _ABOUT).exists()

    @staticmethod
    def size(folder: Path) -> int:
        """Return the bytes of states in a folder; 0 if it does not exist."""
        return sum(path.stat().st_size for path in folder.glob(f"*{_STATES}"))

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def refresh(self) -> None:
        """Read the index of what all processes have written since the last call."""
        for index in sorted(self.folder.glob(f"*{_INDEX}")):
            part = self._parts.setdefault(index.stem, _Part(index.with_suffix(_STATES), index))
            if index.stat().st_size // _RECORD.itemsize <= part.records_read:
                continue
            records = np.fromfile(index, _RECORD, offset=part.records_read * _RECORD.itemsize)
            part.records_read += len(records)
            whole = part.size()
            for key, start, tokens, check_sum in records.tolist():
                if start >= 0 and tokens > 0 and start + self._bytes(tokens) <= whole:
                    self._places[key] = (part, start, tokens, check_sum)

    def _bytes(self, tokens: int) -> int:
        return tokens * self.shape[0] * self.shape[1] * self.dtype.itemsize

    def read(self, key: bytes) -> Tensor:
        """Read one sentence's states, L x T x C'.

        Raises:
            InputError: if the file is gone or damaged.
        """
        part, start, tokens, check_sum = self._places[key]
        states = torch.empty(self.shape[0], tokens, self.shape[1], dtype=self.dtype)
        part.read_into(start, states, check_sum)
        return states

    def write(self, rows: dict[bytes, Tensor]) -> None:
        """Append sentences, key -> L x T x C'.

        Raises:
            InputError: if there is no space left.
        """
        with _needing_space(self.folder):
            self._append(rows)

    def _append(self, rows: dict[bytes, Tensor]) -> None:
        if self._own is None:
            name = f"{os.getpid()}-{secrets.token_hex(8)}"
            files = [(self.folder / (name + suffix)).open("ab", buffering=0) for suffix in (_STATES, _INDEX)]
            self._own = files[0], files[1]
        states, index = self._own
        records = np.empty(len(rows), _RECORD)
        start = os.fstat(states.fileno()).st_size
        for number, (key, row) in enumerate(rows.items()):
            data = row.contiguous().view(torch.uint8).flatten().numpy().data
            _write_all(states, data)
            records[number] = (key, start, row.size(1), zlib.crc32(data))
            start += len(data)
        _write_all(index, memoryview(records.tobytes()))
        self.refresh()


def _difference(stored: Any, wanted: dict[str, Any]) -> str:
    """Return the first setting in which a store differs, with both values."""
    if not isinstance(stored, dict):
        return "its description is damaged"
    name = next(key for key in (*wanted, *stored) if stored.get(key) != json.loads(json.dumps(wanted.get(key))))
    return f"its {name} is {stored.get(name)}, not {wanted.get(name)}"


def _write_all(stream: Any, data: memoryview) -> None:
    while data:
        data = data[stream.write(data) :]
