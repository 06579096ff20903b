"""All units of all descriptions, deduplicated, each with the families it occurs in, split by family."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from tqdm import tqdm  # type: ignore[import-untyped]

from .clean import LengthRatio
from .entries import Entry
from .segment import sentences
from .text import key
from .units import Pair, bitext, mono, synopses, synopsis_pair, target_mono

SPLITS = ("train", "valid", "test")
TASKS = ("bitext", "synopsis", "mono.en", "mono.target")
HELD_OUT_SHARE = 0.05  # of the families, for validation and for test each
MAX_FAMILY_ENTRIES = 60  # a larger family stays in training: it would be a test set of its own
SEED = "lmfusion-debian-1"

Unit = tuple[str, ...]  # (source, target), (description, synopsis) or (sentence,)


@dataclass
class Pool:
    """The distinct units of one task and split, each with the families it occurs in."""

    units: dict[Unit, Unit] = field(default_factory=dict)  # normal form -> the unit as first seen
    families: dict[Unit, set[str]] = field(default_factory=dict)

    def add(self, unit: Unit, families: Iterable[str], name: Unit | None = None) -> None:
        """Keep `unit` unless its normal form (or `name`) is there already."""
        name = name or tuple(key(text) for text in unit)
        self.units.setdefault(name, unit)
        self.families.setdefault(name, set()).update(families)


Pools = dict[str, dict[str, Pool]]  # task -> split -> pool


def rank(text: str) -> str:
    """A pseudo-random sort key that depends on the text alone."""
    return hashlib.sha256(f"{SEED}\n{text}".encode()).hexdigest()


def split_of_family(name: str) -> str:
    """Where a family belongs."""
    share = int(rank(name)[:8], 16) / 0x1_0000_0000
    if share < HELD_OUT_SHARE:
        return "test"
    return "valid" if share < 2 * HELD_OUT_SHARE else "train"


def assign(entries: list[Entry]) -> dict[str, str]:
    """Entry (by md5) -> split. A description shared by families of different splits is training text."""
    sizes = Counter(name for entry in entries for name in entry.families)
    splits: dict[str, str] = {}
    for entry in entries:
        found = {split_of_family(name) if sizes[name] <= MAX_FAMILY_ENTRIES else "train" for name in entry.families}
        splits[entry.md5] = found.pop() if len(found) == 1 else "train"
    return splits


def pools(entries: list[Entry], lang: str) -> Pools:
    """All units, deduplicated within their split."""
    ratio = LengthRatio(synopses(entries))
    splits = assign(entries)
    result: Pools = {task: {split: Pool() for split in SPLITS} for task in TASKS}
    shortest: dict[str, list[tuple[Pair, Entry]]] = {split: [] for split in SPLITS}
    for entry in tqdm(entries, desc="sentences", unit=" descriptions", mininterval=1, disable=None):
        split = splits[entry.md5]
        for pair in bitext(entry, lang, ratio):
            result["bitext"][split].add(pair, entry.families)
        for text in mono(entry.synopsis, entry.lines, "en"):
            result["mono.en"][split].add((text,), entry.families)
        for text in target_mono(entry, lang):
            result["mono.target"][split].add((text,), entry.families)
        if found := synopsis_pair(entry):
            shortest[split].append((found, entry))
    for split, found_pairs in shortest.items():
        # foo, foo-dev and foo-doc begin alike: the one with the shortest synopsis is what the others are parts of.
        for pair, entry in sorted(found_pairs, key=lambda item: (len(item[0][1]), item[0])):
            beginning = key(sentences(pair[0], "en")[0])
            result["synopsis"][split].add(pair, entry.families, name=(beginning,))
    return result


def side_languages(task: str, lang: str) -> tuple[str, ...]:
    """The language of each member of a task's units."""
    return {"bitext": ("en", lang), "synopsis": ("en", "en"), "mono.en": ("en",), "mono.target": (lang,)}[task]
