"""Make a corpus folder of a user's own files: pairs split into train, valid and test, plain text beside them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from lmfusion.text import formats, held_out, suspicions, textio
from lmfusion.text.corpus import file_hash
from lmfusion.text.formats import Pair
from lmfusion.text.held_out import key, pair_key
from lmfusion.text.textio import DataError

MOST_SHARED = 0.5
"""Share of a given test set that may stand in the training pairs before the two are taken for one."""


@dataclass(frozen=True)
class Request:
    """Describe a user's files.

    Attributes:
        source: name of the source side, a language's code unless ``text_language`` is set.
        target: of the target side.
        pairs: two files that belong together line by line.
        tsv: a file with a pair a line; likewise ``jsonl`` and ``tmx``.
        fields: names of the two columns or keys.
        text: files of plain text; the suffix is the language (``plain.en``).
        held_out: number of pairs to split off for each of valid and test.
        seed: of the split.
        text_language: the language of both sides, where they are not named by languages.
        valid: two files to validate on, instead of splitting pairs off.
        test: two files to test on.
    """

    source: str
    target: str
    pairs: tuple[Path, Path] | None = None
    tsv: Path | None = None
    jsonl: Path | None = None
    tmx: Path | None = None
    fields: tuple[str, str] | None = None
    text: tuple[Path, ...] = ()
    held_out: int = 1000
    seed: int = 1
    text_language: str | None = None
    valid: tuple[Path, Path] | None = None
    test: tuple[Path, Path] | None = None

    def inputs(self) -> list[Path]:
        """Return all files."""
        sides = [*(self.pairs or ()), *(self.valid or ()), *(self.test or ())]
        return [*sides, *filter(None, (self.tsv, self.jsonl, self.tmx)), *self.text]

    def read_pairs(self) -> Iterator[Pair]:
        """Yield the pairs to train on and to split."""
        if self.pairs:
            return formats.parallel(*self.pairs)
        if self.tsv:
            return formats.tsv(self.tsv, self.fields)
        if self.jsonl:
            return formats.jsonl(self.jsonl, self.fields or (self.source, self.target))
        if self.tmx:
            return formats.tmx(self.tmx, (self.source, self.target))
        raise DataError("no sentence pairs: give --pairs FILE FILE, --tsv, --jsonl or --tmx.")

    def languages(self) -> list[str]:
        """Return the languages of plain text, each once."""
        return [self.text_language] if self.text_language else [self.source, self.target]


@dataclass
class Summary:
    """Tell what became of the files.

    Attributes:
        counts: lines by file of the corpus folder.
        notes: what a person should know, a line each.
        sources: SHA-256 of each file that was read, by name.
    """

    counts: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)


def build(request: Request, folder: Path) -> Summary:
    """Write train, valid and test pairs and plain text as data preparation reads them.

    Pairs with an empty side and repeated pairs are left out; so are training pairs and plain sentences that share a
    sentence with valid or test. Which pairs are held out depends on their hashes alone, so that text added later
    moves few of them.

    Args:
        request: the files.
        folder: to write ``train.en`` … ``mono.train.en`` … into.

    Raises:
        DataError: something is wrong with a file (it is named, with the line), or there is too little text.
    """
    summary = Summary(sources={path.name: file_hash(path) for path in request.inputs() if path.is_file()})
    given = {split: list(formats.parallel(*files)) for split, files in _given(request).items()}
    chosen: dict[str, set[int]] = {"test": set(), "valid": set()}
    if len(given) < 2:
        test, valid = held_out.choose_pairs(request.read_pairs(), request.held_out, request.seed)
        chosen = {"test": set() if "test" in given else test, "valid": set() if "valid" in given else valid}
    sides = _write_pairs(request, folder, given, chosen, summary)
    for language in request.languages():
        _write_plain(request, folder, language, sides, summary)
    summary.notes += suspicions.about(request, folder)
    return summary


def _given(request: Request) -> dict[str, tuple[Path, Path]]:
    return {split: files for split, files in (("test", request.test), ("valid", request.valid)) if files}


def _write_pairs(
    request: Request, folder: Path, given: dict[str, list[Pair]], chosen: dict[str, set[int]], summary: Summary
) -> tuple[set[int], set[int]]:
    """Write the pairs of all splits; return the hashes of the held-out sides."""
    held = {split: list(pairs) for split, pairs in given.items()}
    for pair in request.read_pairs() if any(chosen.values()) else ():
        for split, keys in chosen.items():
            if all(pair) and (whole := pair_key(pair, request.seed)) in keys:
                keys.discard(whole)  # once
                held.setdefault(split, []).append(pair)
    flat = list(chain.from_iterable(held.values()))
    sides = ({key(source) for source, _ in flat}, {key(target) for _, target in flat})
    why: Counter[str] = Counter()
    for split, pairs in given.items():
        _refuse_leak(request, split, pairs)
    wholes = {pair_key(pair, request.seed) for split in held if split not in given for pair in held[split]}
    _write_split(request, folder, "train", _training(request, sides, wholes, why), summary)
    for split, pairs in held.items():
        _write_split(request, folder, split, iter(pairs), summary)
    if not summary.counts[f"train.{request.source}"]:
        raise DataError(f"no pair is left to train on ({_listed(why)}).")
    if why:
        summary.notes.append(f"training pairs left out: {_listed(why)}")
    return sides


def _training(
    request: Request, sides: tuple[set[int], set[int]], split_off: set[int], why: Counter[str]
) -> Iterator[Pair]:
    seen: set[int] = set()
    for pair in request.read_pairs():
        whole = pair_key(pair, request.seed)
        if not all(pair):
            why["a side is empty"] += 1
        elif whole in split_off:
            continue
        elif whole in seen:
            why["repeated"] += 1
        elif key(pair[0]) in sides[0] or key(pair[1]) in sides[1]:
            why["a sentence is in valid or test"] += 1
        else:
            seen.add(whole)
            yield pair


def _refuse_leak(request: Request, split: str, pairs: list[Pair]) -> None:
    """Refuse pairs to test on most of which are training pairs; fewer are taken out of these, and counted."""
    keys = {pair_key(pair, request.seed) for pair in pairs}
    found = keys & {pair_key(pair, request.seed) for pair in request.read_pairs()}
    if len(found) > MOST_SHARED * len(keys):
        raise DataError(
            f"--{split}: {len(found):,} of its {len(keys):,} pairs are training pairs. Take them out, or leave "
            f"--{split} away: --held-out splits pairs off."
        )


def _write_split(request: Request, folder: Path, split: str, pairs: Iterator[Pair], summary: Summary) -> None:
    names = [f"{split}.{side}" for side in (request.source, request.target)]
    count = 0
    with textio.writing(folder / names[0]) as source, textio.writing(folder / names[1]) as target:
        for count, pair in enumerate(pairs, start=1):  # noqa: B007
            source.write(pair[0] + "\n")
            target.write(pair[1] + "\n")
    summary.counts.update(dict.fromkeys(names, count))


def _write_plain(
    request: Request, folder: Path, language: str, sides: tuple[set[int], set[int]], summary: Summary
) -> None:
    """Write the plain text of one language, a part of it for validation."""
    hidden = set.union(
        *(keys for side, keys in zip((request.source, request.target), sides) if _is(request, side, language))
    )
    files = [path for path in request.text if language_of(path) == language or request.text_language]
    if not files:
        own = [side for side in (request.source, request.target) if _is(request, side, language)][:1]
        files = [folder / f"train.{side}" for side in own]
        summary.notes.append(f"no plain text in {language}: its language model has the training pairs' sentences alone")
    why: Counter[str] = Counter()
    chosen = held_out.choose_lines({key(line) for path in files for line in formats.lines(path) if line} - hidden)
    names = {split: f"mono.{split}.{language}" for split in ("train", "valid")}
    counts, seen = Counter(dict.fromkeys(names.values(), 0)), set[int]()
    with textio.writing(folder / names["train"]) as train, textio.writing(folder / names["valid"]) as valid:
        for line in chain.from_iterable(map(formats.lines, files)):
            number = key(line)
            if not line or number in seen or number in hidden:
                why["empty" if not line else "in valid or test" if number in hidden else "repeated"] += 1
                continue
            seen.add(number)
            (valid if number in chosen else train).write(line + "\n")
            counts[names["valid" if number in chosen else "train"]] += 1
    summary.counts.update(counts)
    if why:
        summary.notes.append(f"plain sentences in {language} left out: {_listed(why)}")


def language_of(path: Path) -> str:
    """Return the language in a file's name: plain.en, plain.en.gz."""
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix not in (".gz", ".xz", ".txt")]
    return suffixes[-1] if suffixes else ""


def _is(request: Request, side: str, language: str) -> bool:
    return side == language or request.text_language == language


def _listed(why: Counter[str]) -> str:
    return ", ".join(f"{count:,} ({reason})" for reason, count in why.most_common())
