"""What turns plain text into a model's symbols and back, kept inside the model's checkpoint.

A checkpoint of fairseq names the files of its BPE and dictionaries; one that has moved, or was given to somebody, has
them no longer. Ours hold the files themselves, as bytes in uint8 tensors, so that reading them runs nothing.
"""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.text.named_files import languages_of
from lmfusion.text.two_bpe import pack_pair

logger = logging.getLogger(__name__)

PAIR = "lmfusion"
ENTRY = "text"
"""Of the checkpoint."""
BPE = {
    "sentencepiece": "sentencepiece_model",
    "subword_nmt": "bpe_codes",
    "fastbpe": "bpe_codes",
    PAIR: "bpe_pair",
}
"""The kinds of BPE that a checkpoint can hold, and the value of their configuration that names their file."""
CARD, LICENCE = "card", "licence"
"""Entries of a packed model, beside :data:`ENTRY`: UTF-8 text in uint8 tensors."""
PAIRED = ("src_bpe", "tgt_bpe")
"""The values that name the files of the two segmentations of a pair."""
TOKENIZERS = ("moses", "moses_monolingual", "nltk", "space")
_PLAIN = (bool, int, float, str)


@dataclass(frozen=True)
class TextKit:
    """Everything between plain text and a model's indices.

    Attributes:
        languages: names of source and target side, as in file names and flags; of a language model none.
        tokenizer: configuration of fairseq's tokenizer, its name under ``_name``; empty without one.
        bpe: the same of the BPE, without its file.
        bpe_file: content of the BPE's file.
        dictionaries: content of the dictionaries of the sides, source first.
    """

    languages: tuple[str, ...] = ()
    tokenizer: dict[str, Any] = dataclasses.field(default_factory=dict)
    bpe: dict[str, Any] = dataclasses.field(default_factory=dict)
    bpe_file: bytes = b""
    dictionaries: tuple[bytes, ...] = ()

    def to_state(self) -> dict[str, Any]:
        """Return the kit as plain values and uint8 tensors, for a checkpoint."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        values["bpe_file"] = to_tensor(self.bpe_file)
        values["dictionaries"] = [to_tensor(content) for content in self.dictionaries]
        values["languages"] = list(self.languages)
        return values

    def facts(self) -> dict[str, Any]:
        """Return what is in it as plain values: languages, kinds of tokenizer and BPE, words of each dictionary."""
        return {
            "languages": list(self.languages),
            "tokenizer": self.tokenizer.get("_name"),
            "bpe": self.bpe.get("_name"),
            "dictionaries": [len(content.splitlines()) for content in self.dictionaries],
        }

    def unpack(self, folder: Path) -> dict[str, Any]:
        """Write the files into a folder, as fairseq wants them there.

        Args:
            folder: it must exist.

        Returns:
            The configuration of the BPE with its file's path; empty without a BPE.
        """
        for language, content in zip(self.languages, self.dictionaries):
            (folder / f"dict.{language}.txt").write_bytes(content)
        if not self.bpe:
            return {}
        path = folder / "bpe.model"
        path.write_bytes(self.bpe_file)
        return {**self.bpe, BPE[self.bpe["_name"]]: str(path)}


def to_tensor(content: bytes) -> Tensor:
    """Return bytes as a uint8 tensor."""
    return torch.frombuffer(bytearray(content), dtype=torch.uint8) if content else torch.zeros(0, dtype=torch.uint8)


def to_bytes(tensor: Tensor) -> bytes:
    """Return the bytes of a uint8 tensor.

    Raises:
        ValueError: if it is none.
    """
    if not isinstance(tensor, Tensor) or tensor.dtype != torch.uint8 or tensor.dim() != 1:
        raise ValueError("where bytes belong there are none")
    return tensor.numpy().tobytes()


def from_state(path: str | Path, state: Mapping[str, Any]) -> TextKit | None:
    """Return the kit in a checkpoint, or None where there is none.

    Args:
        path: of the file, for messages.
        state: its content.

    Raises:
        InputError: if the entry is not what training writes.
    """
    entry = state.get(ENTRY)
    if entry is None:
        return None
    try:
        if not isinstance(entry, Mapping):
            raise TypeError(f"it is a {type(entry).__name__}")
        languages, dictionaries = entry["languages"], entry["dictionaries"]
        kit = TextKit(
            tuple(_name(language) for language in languages),
            _plain(entry["tokenizer"], TOKENIZERS),
            _plain(entry["bpe"], BPE),
            to_bytes(entry["bpe_file"]),
            tuple(_text(to_bytes(content)) for content in dictionaries),
        )
        if len(kit.languages) != len(kit.dictionaries) or len(kit.languages) not in (0, 2):
            raise ValueError(f"{len(kit.dictionaries)} dictionaries of {len(kit.languages)} languages")
        if len(set(kit.languages)) < len(kit.languages):
            raise ValueError(f"both sides are called {kit.languages[0]}")  # and so would their dictionaries' files
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise InputError(
            f"{path} is damaged or not what it says: its entry {ENTRY!r}, of BPE and dictionaries, is none ({error})."
        ) from error
    return kit


def written(path: str | Path, state: Mapping[str, Any], name: str) -> str:
    """Return the model card or the licence in a packed model, without control characters; empty where it has none.

    Args:
        path: of the file, for messages.
        state: its content.
        name: :data:`CARD` or :data:`LICENCE`.

    Raises:
        InputError: if the entry is no text.
    """
    if name not in state:
        return ""
    try:
        text = to_bytes(state[name]).decode("utf-8")
    except ValueError as error:
        raise InputError(f"{path} is damaged or not what it says: its entry {name!r} is no text ({error}).") from error
    return "".join(char for char in text if char.isprintable() or char in "\n\t")


def _text(content: bytes) -> bytes:
    """Return the bytes of a text; fairseq's dictionaries say nothing of a file when they are none."""
    content.decode("utf-8")
    return content


def _name(language: Any) -> str:
    """Return a side's name, which becomes part of a file's name."""
    if not isinstance(language, str) or Path(language).name != language or language in ("", ".", ".."):
        raise ValueError(f"{language!r} is no name of a language")
    return language


def _plain(section: Any, known: Any) -> dict[str, Any]:
    """Return a section of plain values; its kind must be a known one, and no value may name a file."""
    if not section:
        return {}
    if section["_name"] not in known:
        raise ValueError(f"{section['_name']!r} is none of {', '.join(known)}")
    files = {*BPE.values(), *PAIRED}
    return {name: value for name, value in section.items() if isinstance(value, _PLAIN) and name not in files}


def collect(cfg: Mapping[str, Any]) -> TextKit | None:
    """Collect the kit of a training run from the files that its configuration names.

    Args:
        cfg: fairseq's configuration as a dictionary of sections.

    Returns:
        The kit; None where the run names no dictionaries and no BPE, or kinds that a checkpoint cannot hold.
    """
    task = _section(cfg.get("task"))
    folder = str(task.get("data") or "").split(":")[0]
    languages = tuple(name for name in languages_of(task, folder) if name)
    paths = [Path(folder) / f"dict.{language}.txt" for language in languages]
    bpe, tokenizer = _section(cfg.get("bpe")), _section(cfg.get("tokenizer"))
    content = _bpe_file(bpe) if bpe else b""
    dictionaries = [_read(str(path)) for path in paths]
    if content is None or None in dictionaries or not (bpe or dictionaries):
        return None
    known = tokenizer if tokenizer.get("_name") in TOKENIZERS else {}
    return TextKit(
        languages, _plain(known, TOKENIZERS), _plain(bpe, BPE), content, tuple(each for each in dictionaries if each)
    )


def _section(section: Any) -> dict[str, Any]:
    values = section if isinstance(section, Mapping) else vars(section) if hasattr(section, "__dict__") else {}
    return dict(values)


def _bpe_file(bpe: dict[str, Any]) -> bytes | None:
    """Return the content of the file of a BPE, or of both files of a pair as one; None where there is none."""
    kind = bpe.get("_name")
    if kind == PAIR and any(bpe.get(name) for name in PAIRED):
        return _read_pair(*(bpe.get(name) for name in PAIRED))
    return _read(bpe[BPE[kind]]) if kind in BPE and bpe.get(BPE[kind]) else None


@lru_cache
def _read_pair(src_bpe: str | None, tgt_bpe: str | None) -> bytes | None:
    """Return both segmentations as one file, read once a process."""
    try:
        return pack_pair(src_bpe, tgt_bpe)
    except InputError as error:
        logger.warning(f"checkpoints will not hold their segmentation, and will need it: {error}")
        return None


@lru_cache
def _read(path: str) -> bytes | None:
    """Return a file's content, once a process: what a run began with stays, whatever becomes of the file."""
    try:
        return Path(path).read_bytes()
    except OSError as error:
        logger.warning(f"{path} cannot be read ({error.strerror}): checkpoints will not hold it, and will need it")
        return None
