"""REMOVE near-duplicates between held-out candidates and training lines of one language."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tqdm import tqdm  # type: ignore[import-untyped]

from .neardup import BACKGROUND, REMOVE, HeldOut, held_out_atoms, matching_lines

MAX_TRAIN_FAMILIES = 3


class Leaks:
    """REMOVE near-duplicates between held-out candidates and training lines of one language."""

    def __init__(self, candidates: Iterable[str], train: dict[str, set[str]], lang: str) -> None:
        self.lang = lang
        texts = sorted({atom for line in candidates for atom in held_out_atoms(line, lang, REMOVE)})
        self._number = {text: number for number, text in enumerate(texts)}
        progress = tqdm(train, desc=f"near-duplicates, {lang}", unit=" lines", mininterval=1, disable=None)
        self._by_line = matching_lines(HeldOut(texts, REMOVE, background=islice(train, BACKGROUND)), progress, lang)
        self._families: dict[int, set[str]] = {}
        for line, numbers in self._by_line.items():
            for number in numbers:
                self._families.setdefault(number, set()).update(train[line])

    def boilerplate(self, line: str) -> bool:
        """Whether any part of a candidate is found in too many training families."""
        numbers = (self._number[atom] for atom in held_out_atoms(line, self.lang, REMOVE))
        return any(len(self._families.get(number, ())) > MAX_TRAIN_FAMILIES for number in numbers)

    def lines_like(self, chosen: Iterable[str]) -> set[str]:
        """The training lines that resemble any of the chosen candidates."""
        numbers = {self._number[atom] for line in chosen for atom in held_out_atoms(line, self.lang, REMOVE)}
        return {line for line, found in self._by_line.items() if not found.isdisjoint(numbers)}
