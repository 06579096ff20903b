"""Store a frozen language model's states of training sentences, and read them back in later epochs."""

from __future__ import annotations

import copy
import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.interface import PretrainedLM
from lmfusion.state_cache.store import FORMAT, StateStore

logger = logging.getLogger(__name__)

Precision = tuple[torch.dtype, "torch.dtype | None"]  # of weights, and what autocast computes in


class StoredStates:
    """A frozen LM's ``layer_states``, computed once for each sentence and read from disk afterwards.

    Args:
        lm: the frozen language model.
        folder: of all stores; each LM and precision has a subfolder of its own.
        fingerprint: of the LM's weights.
        chosen: numbers of the states that are wanted; None: all.
        half: store numbers in half precision: half the size, and an error of at most 0.05% of a number from 6e-5 up.
    """

    def __init__(
        self,
        lm: PretrainedLM,
        folder: str | Path,
        fingerprint: str,
        *,
        chosen: Sequence[int] | None = None,
        half: bool = False,
    ) -> None:
        self.lm, self.folder, self.fingerprint, self.half = lm, Path(folder), fingerprint, half
        self.chosen = list(range(lm.num_states) if chosen is None else chosen)
        self._stores: dict[Path, StateStore] = {}

    def __deepcopy__(self, memo: dict[int, Any]) -> StoredStates:
        """Copy the settings alone: a copy of the model (--store-ema) opens files of its own."""
        lm = copy.deepcopy(self.lm, memo)
        return StoredStates(lm, self.folder, self.fingerprint, chosen=self.chosen, half=self.half)

    def __call__(self, tokens: Tensor) -> list[Tensor]:
        """Return the chosen layer states of a batch, from disk where they are stored.

        Args:
            tokens: B x T ids of the LM, left-aligned.

        Returns:
            L tensors of B x T x C'; zero at padding.

        Raises:
            InputError: if stored states are damaged, do not fit into half precision, or there is no space left.
        """
        words = tokens.cpu()
        lengths = words.ne(self.lm.padding_idx).sum(1).tolist()
        keys = [_key(row[:length]) for row, length in zip(words, lengths)]
        store = self._open()
        if store is not None and any(key not in store for key in keys):
            store.refresh()  # another process may have them
        missing = [row for row, key in enumerate(keys) if store is None or key not in store]
        if missing:
            width = max(lengths[row] for row in missing)
            layers = self.lm.layer_states(tokens[missing, :width])
            fresh = torch.stack([layers[number] for number in self.chosen])
            store = store or self._create(fresh.dtype)
            stored = _in_range(fresh.to("cpu", store.dtype), self.half)
            store.write({keys[row]: stored[:, number, : lengths[row]] for number, row in enumerate(missing)})
        assert store is not None
        out = torch.zeros(store.shape[0], *tokens.shape, store.shape[1], dtype=store.computed)
        for row, (key, length) in enumerate(zip(keys, lengths)):
            out[:, row, :length] = store.read(key)
        return list(out.to(tokens.device))

    def present(self, weights: torch.dtype, autocast: torch.dtype | None) -> int:
        """Return the bytes already stored for runs whose LM computes in this precision.

        Args:
            weights: type of the LM's weights.
            autocast: type in which autocast computes; None without it.
        """
        return StateStore.size(self._folder((weights, autocast)))

    def _settings(self, precision: Precision | None = None) -> dict[str, Any]:
        """Return all that changes the numbers: it names a store and, as folders can be renamed, is kept inside."""
        weights, autocast = precision or _precision(self.lm)
        # Stores of all states do not name them.
        some = {} if self.chosen == list(range(self.lm.num_states)) else {"states": self.chosen}
        return {
            "format": FORMAT,
            "fingerprint": self.fingerprint,
            "lm": self.lm.config,
            "precision": f"{weights}, autocast {autocast or 'off'}",
            "half": self.half,
            **some,
        }

    def _folder(self, precision: Precision | None = None) -> Path:
        return self._named(self._settings(precision))

    def _named(self, settings: Any) -> Path:
        name = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]
        return self.folder / (f"{name}-half" if self.half else name)

    def _mention_older(self) -> None:
        """Warn that a store of the previous format is not used.

        It does not say whose states it holds, and one that was renamed cannot be told from one that was not; computing
        its states again takes one epoch without the cache's gain.
        """
        settings = self._settings()
        older = self._named([2, *(settings[name] for name in ("fingerprint", "lm", "precision"))])
        if StateStore.exists(older):
            logger.warning(
                f"{older} was written by an earlier version of lmfusion and does not say of which language model its "
                f"states are: they are computed again, into {self._folder()}. Delete the former to make room."
            )

    def _open(self) -> StateStore | None:
        folder = self._folder()
        if folder not in self._stores and StateStore.exists(folder):
            self._stores[folder] = StateStore(folder, self._shape, self._settings())
        return self._stores.get(folder)

    def _create(self, computed: torch.dtype) -> StateStore:
        folder, stored = self._folder(), torch.float16 if self.half else computed
        self._mention_older()
        self._stores[folder] = StateStore.create(folder, self._shape, stored, computed, self._settings())
        return self._stores[folder]

    @property
    def _shape(self) -> tuple[int, int]:
        return len(self.chosen), self.lm.state_dim

    def bytes_per_token(self, dtype: torch.dtype = torch.float32) -> int:
        """Return the bytes of disk space that a token takes where the LM computes in ``dtype``."""
        return len(self.chosen) * self.lm.state_dim * (2 if self.half else dtype.itemsize)


def _precision(lm: PretrainedLM) -> Precision:
    """Return the precision in which the LM computes at this moment."""
    weight = next(lm.parameters())
    device = weight.device.type
    return weight.dtype, torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else None


def _in_range(stored: Tensor, half: bool) -> Tensor:
    if half and not stored.isfinite().all():
        raise InputError(
            "--src-lm-cache-half: the language model has states above 65,504, the most that half precision holds: "
            "leave it out."
        )
    return stored


def _key(row: Tensor) -> bytes:
    """Return a sentence's key, a hash of its tokens."""
    return hashlib.blake2b(row.to(torch.int32).numpy().tobytes(), digest_size=16).hexdigest().encode()
