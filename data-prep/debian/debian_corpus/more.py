"""Packages of text -> monolingual sentences that go beside a corpus and share nothing with its held-out text.

1. Packages whose family is held out (pools.split_of_family) are left out; within collections of many programs' text,
   the manual pages and message catalogs that bear the name of such a family.
2. Of what is left, only sentences count, of the right language, and those not in the corpus' training text already.
3. Whatever resembles a validation or test text of the corpus, of any of its tasks, is removed: by the thresholds that
   the finished corpus is checked by (neardup.STRICT), and lines are also compared as a whole up to 100 words.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tqdm import tqdm  # type: ignore[import-untyped]

from .debs import Deb, Listed
from .documents import held_out, texts, usable_sentences
from .errors import CorpusError
from .language import Language
from .neardup import BACKGROUND, REMOVE, STRICT, HeldOut, Thresholds, held_out_atoms, matching_lines, resembled
from .pools import rank
from .text import key, words

REMOVE_MORE = Thresholds(STRICT.bigrams, STRICT.words, STRICT.containment, STRICT.min_contained, REMOVE.max_whole)

Lines = dict[str, list[str]]  # language -> lines


@dataclass
class Found:
    """The distinct sentences of one language, each with the package it was first seen in, and what was left out."""

    packages: dict[str, str] = field(default_factory=dict)  # sentence -> package
    left_out: Counter[str] = field(default_factory=Counter)


class Collector:
    """Gathers the sentences of one package after the other."""

    def __init__(self, train: Lines, lang: str) -> None:
        """`train`: the corpus' training text of both languages."""
        self.lang = lang
        other = {"en": lang, lang: "en"}
        self._judges = {language: Language(train[language], train[other[language]]) for language in other}
        self._seen = {language: {key(line) for line in train[language]} for language in other}
        self.found = {language: Found() for language in other}

    def add(self, deb: Deb) -> dict[str, int]:
        """Take what is new in a package; what was read, and what was left out of it."""
        counts: Counter[str] = Counter()
        for language, block in texts(deb, self.lang, counts):
            for sentence in usable_sentences(block, language):
                self._add_sentence(sentence, language, deb.listed.package)
        return dict(counts)

    def _add_sentence(self, sentence: str, language: str, package: str) -> None:
        found, spelled = self.found[language], words(sentence)
        name = " ".join(spelled)  # text.key
        if name in self._seen[language]:
            found.left_out["repeated"] += 1
        elif not self._judges[language].speaks(spelled):
            found.left_out["of another language, or no running text"] += 1
        else:
            self._seen[language].add(name)
            found.packages[sentence] = package


def without_leaks(lines: list[str], held: Iterable[str], lang: str) -> list[str]:
    """The lines that resemble no held-out line.

    Raises:
        CorpusError: what is left does, by the check of a finished corpus.
    """
    held = list(dict.fromkeys(held))
    atoms = sorted({atom for line in held for atom in held_out_atoms(line, lang, REMOVE_MORE)})
    index = HeldOut(atoms, REMOVE_MORE, islice(lines, BACKGROUND))
    progress = tqdm(lines, desc=f"near-duplicates of held-out text, {lang}", unit=" lines", mininterval=1, disable=None)
    like = matching_lines(index, progress, lang)
    kept = [line for line in lines if line not in like]
    leaks = resembled(held, kept, lang, STRICT, f"check, {lang}")
    if leaks:
        line, source = next(iter(leaks.items()))
        raise CorpusError(f"{len(leaks)} held-out lines are still in the {lang} text, e.g. {line!r} in {source!r}")
    print(f"{lang}: {len(lines) - len(kept):,} near-duplicates of held-out text removed; "
          f"{len(leaks)} of {len(held):,} held-out lines have one in the {len(kept):,} lines left")  # fmt: skip
    return kept


def allowed(rows: list[Listed]) -> list[Listed]:
    """The rows whose source package is of no held-out family; says which are not."""
    left_out = [row.package for row in rows if held_out(row.source)]
    if left_out:
        print(f"left out, of held-out families: {', '.join(left_out)}")
    return [row for row in rows if row.package not in left_out]


def gather(debs: list[Deb], train: Lines, held: Lines, lang: str) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """File name -> lines, shuffled so that any first N are a random sample; and what came from where.

    Raises:
        CorpusError: nothing is left, or a package is damaged.
    """
    collector = Collector(train, lang)
    packages: dict[str, dict[str, Any]] = {}
    for deb in tqdm(debs, desc="reading", unit=" packages", disable=None):
        row = deb.listed
        packages[row.package] = {
            "source": row.source,
            "version": deb.version,
            "sha256": deb.sha256,
            "licence": row.licence,
            "read": collector.add(deb),
        }
    files: dict[str, list[str]] = {}
    left_out: dict[str, dict[str, int]] = {}
    for language, found in collector.found.items():
        if not found.packages:
            raise CorpusError(f"the packages hold no usable sentence in {language!r}: does the table list any?")
        kept = without_leaks(sorted(found.packages, key=rank), held[language], language)
        found.left_out["near-duplicates of held-out text"] = len(found.packages) - len(kept)
        left_out[language] = dict(sorted(found.left_out.items()))
        for package, number in Counter(found.packages[line] for line in kept).items():
            packages[package].setdefault("lines", {})[language] = number
        files[f"mono.more.{language}"] = kept
    return files, {"packages": packages, "left_out": left_out}
