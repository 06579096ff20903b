"""newscrawl 2007-2017 of one language: filtered, deduplicated, Moses tokens.

Two passes over the compressed files: the first writes a hash of every sentence that passes the filter, the second
writes the sentences whose hash comes for the first time. Nothing but the hashes' parts is ever in memory (dedup.py).
The newest year comes first; the first sentences kept (the files are shuffled) are held out for validation.
"""

from __future__ import annotations

import gzip
import os
import zlib
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

from lmfusion.text import textio, tokenize_text
from paper_corpora import dedup
from paper_corpora.fetch import progress
from paper_corpora.stages import Outcome, Stage
from paper_corpora.workspace import Workspace

CORPUS = "newscrawl"
YEARS = range(2017, 2006, -1)
MAX_WORDS = 250
EXPECTED = {"en": 193_000_000, "de": 260_000_000}
"""Sentences, as the paper gives them."""
LINES_A_LOOK = 4096  # at the position in the file, for the progress bar
UNPACKED = 3  # bytes of text for a byte of .gz, for the plan of the disk space


def stages(workspace: Workspace, lang: str) -> list[Stage]:
    """Text, then tokens, of one language."""
    folder = workspace.folder(CORPUS)
    sources = tuple(workspace.source(f"newscrawl.{year}.{lang}") for year in YEARS)
    size = UNPACKED * sum(source.size for source in sources)
    names = [f"mono.{split}.{lang}" for split in ("train", "valid")]

    def tokenize() -> Outcome:
        for name in names:
            tokenize_text.tokenize_file(folder / "text" / name, folder / "tok" / name, lang, workspace.workers)
        return Outcome("Moses tokens", {})

    return [
        Stage(
            *(CORPUS, f"text.{lang}", tuple(folder / "text" / name for name in names)),
            make=lambda: clean(workspace, lang),
            disk=size + size // 10,
            sources=sources,
        ),
        Stage(CORPUS, f"tok.{lang}", tuple(folder / "tok" / name for name in names), tokenize, size + size // 20),
    ]


def clean(workspace: Workspace, lang: str) -> Outcome:
    """Write the text of one language, each sentence once.

    Raises:
        DataError: a file is cut short, or too few sentences are left.
    """
    files = [workspace.path(f"newscrawl.{year}.{lang}") for year in YEARS]
    text = workspace.folder(CORPUS) / "text"
    hashes = textio.partial_name(text / f"hashes.{lang}")
    text.mkdir(parents=True, exist_ok=True)
    try:
        counts = write_hashes(files, hashes)
        first = dedup.first_occurrences(hashes)
    finally:
        hashes.unlink(missing_ok=True)
    counts["dropped_repeated"] = len(first) - int(first.sum())
    kept, held_out = int(first.sum()), workspace.scale.held_out_mono
    if kept <= held_out:
        raise textio.DataError(f"newscrawl {lang}: only {kept:,} sentences are left, {held_out:,} are to be held out")
    with textio.writing(text / f"mono.valid.{lang}") as valid, textio.writing(text / f"mono.train.{lang}") as train:
        for number, sentence in enumerate(kept_sentences(files, first)):
            (valid if number < held_out else train).write(sentence + "\n")
    counts.update(train=kept - held_out, valid=held_out)
    return Outcome(account(lang, counts), dict(counts))


def write_hashes(files: list[Path], hashes: Path) -> Counter[str]:
    """Write the hash of every sentence that passes the filter; count what does not."""
    counts: Counter[str] = Counter()
    with hashes.open("wb") as stream:
        for verdict, sentence in judged(files, "hashing"):
            counts["read"] += 1
            if verdict == "kept":
                stream.write(dedup.sentence_hash(sentence.encode()))
            else:
                counts[verdict] += 1
    return counts


def kept_sentences(files: list[Path], first: list[bool]) -> Iterator[str]:
    """The sentences that pass the filter and come for the first time."""
    passed = (sentence for verdict, sentence in judged(files, "writing") if verdict == "kept")
    return (sentence for sentence, new in zip(passed, first) if new)


def judged(files: list[Path], label: str) -> Iterator[tuple[str, str]]:
    """Each line of the files with white space made single spaces, and whether and why it is dropped.

    Raises:
        DataError: a file cannot be decompressed to its end.
    """
    with ExitStack() as stack:
        bar = stack.enter_context(progress(sum(path.stat().st_size for path in files), label))
        for path in files:
            done, raw = 0, stack.enter_context(path.open("rb"))
            try:
                lines = stack.enter_context(gzip.open(raw)) if textio.is_gzip(path) else raw  # a mirror may unpack
                for number, line in enumerate(lines):
                    yield judge(line)
                    if number % LINES_A_LOOK == 0:
                        position = os.lseek(raw.fileno(), 0, os.SEEK_CUR)
                        bar.update(position - done)
                        done = position
            except (EOFError, zlib.error, gzip.BadGzipFile) as error:
                raise textio.DataError(
                    f"{path}: cannot be decompressed to its end ({error}). Fetch it again."
                ) from error


def judge(line: bytes) -> tuple[str, str]:
    """A line as a clean sentence, and "kept" or why it is dropped."""
    try:
        words = line.decode("utf-8").split()
    except UnicodeDecodeError:
        return "dropped_not_utf8", ""
    if not words:
        return "dropped_empty", ""
    if len(words) > MAX_WORDS:
        return "dropped_long", ""
    return "kept", " ".join(words)


def account(lang: str, counts: Counter[str]) -> str:
    """Every line that was read: where it went."""
    left = counts["train"] + counts["valid"]
    dropped = {name: counts[name] for name in sorted(counts) if name.startswith("dropped_")}
    if counts["read"] != left + sum(dropped.values()):
        raise AssertionError(f"lines do not add up: {dict(counts)}")
    parts = [f"{number:,} {name.removeprefix('dropped_').replace('_', ' ')}" for name, number in dropped.items()]
    return (
        f"{counts['read']:,} lines read; dropped: {', '.join(parts)}; kept: {counts['train']:,} to train, "
        f"{counts['valid']:,} held out (paper: {EXPECTED[lang]:,} sentences)"
    )
