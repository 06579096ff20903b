"""What a frozen language model says of a sentence never changes: store it, and read it back in later epochs.

A store is a folder of parts. Every process writes a part of its own and reads all: ``NAME.states`` holds the states of
one sentence behind the other (L x T x C' each), ``NAME.index`` a record for every sentence that is complete in it. A
record is written after its states, so a process killed between the two loses a sentence and damages nothing; and it
has their check sum, so that a bit flipped on the disk is noticed.
"""

from __future__ import annotations

import hashlib
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

from lmfusion.atomic_files import NO_SPACE
from lmfusion.errors import UserError
from lmfusion.lm.interface import PretrainedLM

_RECORD = np.dtype([("key", "S32"), ("start", "<i8"), ("tokens", "<i8"), ("sum", "<u4")])
_FORMAT = 2  # of parts; other formats lie in other folders
_TYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16, "float64": torch.float64}
Precision = tuple[torch.dtype, "torch.dtype | None"]  # of weights, and what autocast computes in
_STATES, _INDEX, _ABOUT = ".states", ".index", "about.json"


@dataclass
class _Part:
    """One process's files, as far as they have been read."""

    states: Path
    index: Path
    records_read: int = 0
    descriptor: int | None = None

    def read_into(self, start: int, buffer: Tensor, check_sum: int) -> None:
        """Fill a tensor with the bytes from ``start`` on."""
        if self.descriptor is None:
            self.descriptor = os.open(self.states, os.O_RDONLY)
        view = buffer.view(torch.uint8).flatten().numpy().data
        if os.preadv(self.descriptor, [view], start) != len(view) or zlib.crc32(view) != check_sum:
            raise UserError(
                f"{self.states} is damaged or shorter than its index says: delete the folder {self.states.parent}, "
                f"whose content will be computed again."
            )

    def size(self) -> int:
        """Bytes of states there are."""
        return self.states.stat().st_size if self.states.exists() else 0


@dataclass(frozen=True)
class _About:
    """What a store holds: L, C', the type stored and the type computed."""

    states: int
    channels: int
    stored: str
    computed: str


@contextmanager
def _needing_space(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno not in NO_SPACE:
            raise
        raise UserError(
            f"no space left for the stored states in {folder}: make room, or train without --src-lm-cache. What is "
            f"stored stays of use."
        ) from error


class StateStore:
    """States of sentences on disk.

    Args:
        folder: with a store in it, or made by :meth:`create`.

    Raises:
        UserError: if its description cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        try:
            about = _About(**json.loads((folder / _ABOUT).read_text(encoding="utf-8")))
            self.dtype, self.computed = _TYPES[about.stored], _TYPES[about.computed]
            self.shape = (int(about.states), int(about.channels))
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise UserError(f"{folder / _ABOUT} is damaged: delete the folder {folder}.") from error
        self._places: dict[bytes, tuple[_Part, int, int, int]] = {}
        self._parts: dict[str, _Part] = {}
        self._own: tuple[Any, Any] | None = None
        self.refresh()

    @classmethod
    def create(cls, folder: Path, shape: tuple[int, int], stored: torch.dtype, computed: torch.dtype) -> StateStore:
        """Make a store, or open the one that another process has just made; UserError if there is no space left."""
        about = _About(*shape, *(str(dtype).removeprefix("torch.") for dtype in (stored, computed)))
        with _needing_space(folder):
            folder.mkdir(parents=True, exist_ok=True)
            scratch = folder / f"{_ABOUT}.{secrets.token_hex(4)}"
            scratch.write_text(json.dumps(asdict(about)), encoding="utf-8")
            scratch.replace(folder / _ABOUT)
        return cls(folder)

    @classmethod
    def exists(cls, folder: Path) -> bool:
        """Whether there is a store."""
        return (folder / _ABOUT).exists()

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def refresh(self) -> None:
        """Read what all processes have written since."""
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
        """One sentence's states, L x T x C'."""
        part, start, tokens, check_sum = self._places[key]
        states = torch.empty(self.shape[0], tokens, self.shape[1], dtype=self.dtype)
        part.read_into(start, states, check_sum)
        return states

    def write(self, rows: dict[bytes, Tensor]) -> None:
        """Append sentences, key -> L x T x C', or raise UserError if there is no space left."""
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


def _write_all(stream: Any, data: memoryview) -> None:
    while data:
        data = data[stream.write(data) :]


class StoredStates:
    """A frozen LM's ``layer_states``, computed for a sentence once.

    Args:
        lm: frozen.
        folder: of all stores; each LM and precision has a subfolder of its own.
        fingerprint: of the LM's weights.
        half: store half-precision numbers: half the size, and an error of at most 0.05% of a number.
    """

    def __init__(self, lm: PretrainedLM, folder: str | Path, fingerprint: str, *, half: bool = False) -> None:
        self.lm, self.folder, self.fingerprint, self.half = lm, Path(folder), fingerprint, half
        self._stores: dict[Path, StateStore] = {}

    def __call__(self, tokens: Tensor) -> list[Tensor]:
        """B x T left-aligned rows -> L tensors of B x T x C'; zero at padding."""
        words = tokens.cpu()
        lengths = words.ne(self.lm.padding_idx).sum(1).tolist()
        keys = [_key(row[:length]) for row, length in zip(words, lengths)]
        store = self._open()
        if store is not None and any(key not in store for key in keys):
            store.refresh()  # another process may have them
        missing = [row for row, key in enumerate(keys) if store is None or key not in store]
        if missing:
            width = max(lengths[row] for row in missing)
            fresh = torch.stack(self.lm.layer_states(tokens[missing, :width]))
            store = store or self._create(fresh.dtype)
            stored = fresh.to("cpu", store.dtype)
            store.write({keys[row]: stored[:, number, : lengths[row]] for number, row in enumerate(missing)})
        assert store is not None
        out = torch.zeros(store.shape[0], *tokens.shape, store.shape[1], dtype=store.computed)
        for row, (key, length) in enumerate(zip(keys, lengths)):
            out[:, row, :length] = store.read(key)
        return list(out.to(tokens.device))

    def present(self, weights: torch.dtype, autocast: torch.dtype | None) -> int:
        """Bytes that are stored already for runs whose LM computes in this precision."""
        return sum(path.stat().st_size for path in self._folder((weights, autocast)).glob(f"*{_STATES}"))

    def _folder(self, precision: Precision | None = None) -> Path:
        """Whatever changes the numbers is in its name."""
        weights, autocast = precision or _precision(self.lm)
        settings = [_FORMAT, self.fingerprint, self.lm.config, f"{weights}, autocast {autocast or 'off'}"]
        name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
        return self.folder / (f"{name}-half" if self.half else name)

    def _open(self) -> StateStore | None:
        folder = self._folder()
        if folder not in self._stores and StateStore.exists(folder):
            self._stores[folder] = StateStore(folder)
        return self._stores.get(folder)

    def _create(self, computed: torch.dtype) -> StateStore:
        shape = (self.lm.num_states, self.lm.state_dim)
        folder = self._folder()
        self._stores[folder] = StateStore.create(folder, shape, torch.float16 if self.half else computed, computed)
        return self._stores[folder]

    def bytes_per_token(self, dtype: torch.dtype = torch.float32) -> int:
        """Disk space of a token where the LM computes in ``dtype``."""
        return self.lm.num_states * self.lm.state_dim * (2 if self.half else dtype.itemsize)


def _precision(lm: PretrainedLM) -> Precision:
    """What the LM computes in just now."""
    weight = next(lm.parameters())
    device = weight.device.type
    return weight.dtype, torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def _key(row: Tensor) -> bytes:
    """Of a sentence: a hash of its tokens."""
    return hashlib.blake2b(row.to(torch.int32).numpy().tobytes(), digest_size=16).hexdigest().encode()
