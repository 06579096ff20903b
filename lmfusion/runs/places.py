"""Which words of a command name files or folders, and what those are, so that what was only moved is known again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from lmfusion.runs.provenance import hash_file

_NO_MATTER = ("--user-dir", "--src-lm-cache")
"""Flags whose folders may lie anywhere: a clone that was moved is the same clone, and a cache knows what it is of."""


def places(command: Sequence[str], run: Path, data: Path | None) -> dict[str, str]:
    """Return what each word of a command that names something on disk stands for, wherever that lies.

    Args:
        command: its words.
        run: the run folder, whose own files are told by their names in it.
        data: the folder of data whose hashes are recorded beside this.
    """
    found = {word: _place(word, run, data) for word in command if not word.startswith("-")}
    return {word: place for word, place in found.items() if place is not None}


def hash_model(path: Path) -> str:
    """Return the SHA-256 of a language model's file, or of the files of its folder that make it what it is."""
    if path.is_file():
        return hash_file(path)
    files = sorted(file for file in path.iterdir() if file.suffix in (".json", ".safetensors"))
    return hashlib.sha256("".join(f"{file.name} {hash_file(file)}\n" for file in files).encode()).hexdigest()


def differing(
    before: Sequence[str], places_before: Mapping[str, str], now: Sequence[str], places_now: Mapping[str, str]
) -> tuple[list[str], list[str]] | None:
    """Return the words that one command has and the other has not; None if both are the same but for what was moved."""
    before, now = _that_matter(before), _that_matter(now)

    def same(then: str, new: str) -> bool:
        return then == new or (then in places_before and places_before[then] == places_now.get(new))

    if len(before) == len(now) and all(map(same, before, now)):
        return None
    gone = [then for then in before if not any(same(then, new) for new in now)]
    return gone, [new for new in now if not any(same(then, new) for then in before)]


def _place(word: str, run: Path, data: Path | None) -> str | None:
    """Return what a word stands for; None if it names nothing that is there."""
    kind, _, rest = word.partition(":")
    if kind in ("hf", "sentencepiece", "pieces") and rest:  # of --src-bpe and --tgt-bpe
        inner = _place(rest, run, data)
        return inner and f"{kind}:{inner}"
    path = Path(os.path.abspath(word))
    if data is not None and path == Path(os.path.abspath(data)):
        return "data"
    if path.is_relative_to(os.path.abspath(run)):
        return f"run/{path.relative_to(os.path.abspath(run))}"
    is_model = os.path.isfile(path) or os.path.isfile(path / "config.json")
    return f"sha256:{hash_model(path)}" if is_model else None


def _that_matter(command: Sequence[str]) -> list[str]:
    return [word for flag, word in zip(["", *command], command) if flag not in _NO_MATTER]
