"""A person's own text -> a corpus folder: read, checked, valid and test split off, nothing held out left in train."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import TextIO
from unicodedata import is_normalized

import numpy as np
from numpy.typing import NDArray

from lmfusion.text import corpus, held_out, looks, mono, suspicions, textio
from lmfusion.text.formats import Pair, Pairs, PlainPairs, UnequalError
from lmfusion.text.held_out import PairHashes
from lmfusion.text.opening import clean, read_text
from lmfusion.text.own_request import Request
from lmfusion.text.textio import DataError

MOST_KNOWN = 0.05
"""A given test set of which a larger share is in the training text tests nothing."""
SAMPLE = 2000  # pairs or lines that are looked at for what seems wrong


@dataclass
class Summary:
    """Report of what became of the text.

    Attributes:
        counts: numbers of pairs by split, and of lines by monolingual file: {"train": 9000, "mono.train.en": 8100}.
        notes: what a person should know, one line each.
        doubts: those of the notes that guess that something is wrong with the text.
        sources: SHA-256 of each file that was read, by its name, or by its path where two have the same name.
    """

    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


def build(request: Request, folder: Path, longest: int | None = None) -> Summary:
    """Write {train,valid,test}.{source,target} and mono.{train,valid}.{language} into a folder.

    The same text and request give the same files. Files appear under their names only when they are complete.

    Args:
        request: the text and how to split it.
        folder: where the files go; made if it does not exist.
        longest: most characters of either side of a pair that is split off, so that no model refuses to read it; of
            the target only, where both sides are in one language and sources are cut. Longer pairs stay in train.

    Raises:
        DataError: something in the text or the request that a person has to fix.
    """
    request.check(folder)
    reader, texts = request.reader(), request.texts()
    summary = Summary(sources=_sources(request.inputs()))
    pairs = _hash_pairs(reader, request.seed)
    summary.notes += reader.notes
    given = {split: _hash_given(split, paths, request.seed) for split, paths in request.given.items()}
    _check_given(given, pairs, summary)
    summary.counts = {split: len(pairs) for split, pairs in given.items()}
    missing = [split for split in ("test", "valid") if split not in given]
    limits = None if request.text_language else longest, longest
    fate = held_out.assign(pairs, request.held_out, missing, given.values(), limits)
    _describe(fate, summary)
    sample = _write_pairs(request, reader, fate, folder, summary)
    if request.text_language is None:
        summary.doubts += suspicions.alignment(pairs.lengths)
    summary.doubts += suspicions.pairs(sample, request.sides, request.text_language is not None)
    for language, paths in texts.items():
        _write_mono(request, language, paths, folder, summary)
    summary.doubts += _compare_languages(request, sample, texts)
    summary.notes += summary.doubts
    return summary


def _sources(paths: list[Path]) -> dict[str, str]:
    names = [path.name for path in paths]
    return {path.name if names.count(path.name) == 1 else str(path): corpus.file_hash(path) for path in paths}


def _hash_pairs(reader: Pairs, seed: int) -> PairHashes:
    """Read all pairs once.

    Raises:
        DataError: a file is wrong, or has no pair.
    """
    try:
        pairs = PairHashes(reader, seed)
    except UnequalError as error:
        lengths = [(len(clean(left)), len(clean(right))) for left, right in zip(*map(read_text, reader.paths))]
        start = suspicions.misaligned_from(np.array(lengths, np.int64).reshape(-1, 2))
        hint = f" Lines belong together up to about line {start:,}." if start else ""
        raise DataError(f"{error}{hint}") from error
    if pairs.empty.all():
        names = " and ".join(map(str, reader.paths))
        raise DataError(f"{names}: no pair has text on both sides. One sentence a line and side is needed.")
    return pairs


def _hash_given(split: str, paths: PlainPairs, seed: int) -> PairHashes:
    """Read a held-out set that was given.

    Raises:
        DataError: it is empty, or a pair in it lacks a side.
    """
    pairs = PairHashes(paths, seed)
    if not len(pairs) or pairs.empty.any():
        number = int(np.argmax(pairs.empty)) + 1
        raise DataError(
            f"--{split} {paths.paths[0]} {paths.paths[1]}, line {number}: empty. Take the pair out of both files."
        )
    return pairs


def _check_given(given: dict[str, PairHashes], pairs: PairHashes, summary: Summary) -> None:
    """Refuse held-out sets that are known from train, or of which one is the other.

    Raises:
        DataError: naming the set and how many of its pairs are known.
    """
    known = {split: [("the training text", pairs)] for split in given}
    if len(given) == 2:
        known["valid"].append(("the test set", given["test"]))
    for split, others in known.items():
        mine = given[split].ranks["test"]
        for name, other in others:
            same = int(np.isin(mine, other.ranks["test"]).sum())
            if same > MOST_KNOWN * len(mine):
                raise DataError(
                    f"--{split}: {same:,} of its {len(mine):,} pairs are in {name} as well, more than "
                    f"{MOST_KNOWN:.0%}. Leave out --{split}, so that one is split off, or give text without them."
                )
            if same:
                summary.notes.append(f"{same:,} of the {len(mine):,} pairs of --{split} are in {name} as well")


def _describe(fate: NDArray[np.uint8], summary: Summary) -> None:
    """Note how many pairs were left out, and why."""
    reasons = {
        held_out.EMPTY: "pairs with an empty side left out",
        held_out.DUPLICATE: "pairs left out that are exactly as an earlier one",
        held_out.RESEMBLES: "pairs left out of train because valid or test has their source or target",
    }
    for code, reason in reasons.items():
        if count := int((fate == code).sum()):
            summary.notes.append(f"{count:,} of {len(fate):,} {reason}")


def _write_pairs(
    request: Request, reader: Pairs, fate: NDArray[np.uint8], folder: Path, summary: Summary
) -> list[Pair]:
    """Write the pairs of all splits, in their order, and return some from all over train."""
    places = np.flatnonzero(fate == held_out.TRAIN)
    wanted = set(places[np.linspace(0, len(places) - 1, min(SAMPLE, len(places))).astype(int)].tolist())
    splits = [split for split in corpus.BITEXT_SPLITS if split not in request.given]
    sample, decomposed = [], 0
    with ExitStack() as stack:
        files = {held_out.SPLITS[split]: _open(stack, request, split, folder) for split in splits}
        for place, (pair, code) in enumerate(zip(reader, fate.tolist())):
            decomposed += not all(is_normalized("NFC", text) for text in pair)
            for stream, text in zip(files.get(code, ()), pair):
                stream.write(text + "\n")
            if place in wanted:
                sample.append(pair)
        for split, pairs in request.given.items():
            streams = _open(stack, request, split, folder)
            for pair in pairs:
                for stream, text in zip(streams, pair):
                    stream.write(text + "\n")
    summary.counts |= {split: int((fate == held_out.SPLITS[split]).sum()) for split in splits}
    if decomposed:
        summary.notes.append(
            f"{decomposed:,} of {len(fate):,} pairs are not in Unicode's form NFC: what looks the same may be other "
            "symbols. Use one form in all files and in what is translated: `uconv -x nfc FILE`."
        )
    return sample


def _open(stack: ExitStack, request: Request, split: str, folder: Path) -> list[TextIO]:
    return [stack.enter_context(textio.writing(folder / f"{split}.{side}")) for side in request.sides]


def _write_mono(request: Request, language: str, paths: list[Path], folder: Path, summary: Summary) -> None:
    """Write the text of one language model."""
    if not paths:
        whose = "articles, cut into sentences" if request.text_language else "training pairs' side"
        summary.notes.append(f"no --text in {language}: a language model trained on it learns from the {whose}")
    read = partial(_mono_lines, request, language, paths, folder)
    names = [f"mono.{split}.{language}" for split in corpus.MONO_SPLITS]
    known = mono.hashes(_held_out_lines(request, language, folder))
    train, valid, repeated, held = mono.write(read, known, request.seed, *(folder / name for name in names))
    summary.counts |= {names[0]: train, names[1]: valid}
    for count, reason in ((repeated, "that are exactly as an earlier one"), (held, "that valid or test has as well")):
        if count:
            summary.notes.append(f"lines of the monolingual text in {language} left out {reason}: {count:,}")
    lines = list(islice(textio.read_lines(folder / names[0]), SAMPLE))
    if paths:
        summary.doubts += suspicions.lines(lines, f"--text in {language}")
    if paths or request.text_language:
        summary.doubts += looks.doubts(language, lines, f"--text in {language}" if paths else f"the text in {language}")


def _mono_lines(request: Request, language: str, paths: list[Path], folder: Path) -> Iterator[str]:
    if paths:
        return map(clean, chain.from_iterable(map(read_text, paths)))
    if request.text_language is None:
        return textio.read_lines(folder / f"train.{language}")
    articles = textio.read_lines(folder / f"train.{request.source}")
    return chain.from_iterable(map(mono.sentences, articles))


def _held_out_lines(request: Request, language: str, folder: Path) -> Iterator[str]:
    """Yield what valid and test have in a language: lines, and their sentences where lines are whole texts."""
    sides = request.sides if request.text_language else (language,)
    for side in sides:
        for split in ("valid", "test"):
            for line in textio.read_lines(folder / f"{split}.{side}"):
                yield line
                if request.text_language:
                    yield from mono.sentences(line)


def _compare_languages(request: Request, sample: list[Pair], texts: dict[str, list[Path]]) -> list[str]:
    """Note texts that look as if their languages were swapped."""
    if request.text_language is not None:
        return []
    sides = {side: suspicions.profile(pair[n] for pair in sample) for n, side in enumerate(request.sides)}
    notes = []
    for split, paths in request.given.items():
        some = list(islice(paths, SAMPLE))
        theirs = {side: suspicions.profile(pair[n] for pair in some) for n, side in enumerate(request.sides)}
        notes += suspicions.swapped(sides, theirs, f"--{split}")
    for language, files in texts.items():
        for path in files:
            lines: Iterable[str] = islice(read_text(path), SAMPLE)
            notes += suspicions.swapped(sides, {language: suspicions.profile(lines)}, str(path))
    return notes
