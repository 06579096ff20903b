#!/usr/bin/env python3
"""Is there a near-duplicate of a valid or test text in any training text? Runs on any corpus folder of build.py.

    python data-prep/debian/check_split.py data-prep/debian/en-de

    python data-prep/debian/check_split.py data-prep/debian/en-de --more FOLDER        the text of more_text.py as well

Compares every held-out line, and every sentence and list item in it, with every training line of the same language and
its parts: bitext, monolingual text and the synopsis task; for the test set the validation sets count as training text.
Prints how many held-out lines have a near-duplicate in which file. Exit status 1 if any has, 2 if it could not check.
debian_corpus/neardup.py says what a near-duplicate is; --bigrams, --words and --containment make the check stricter or
laxer.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from debian_corpus.errors import CorpusError
from debian_corpus.neardup import STRICT, Thresholds, resembled
from debian_corpus.output import CHECKSUMS

Finding = tuple[str, str]  # held-out line, training line


def language(name: str) -> str:
    """A file's language, by the end of its name."""
    side = name.removesuffix(".xz").rsplit(".", 1)[1]
    return "en" if side in ("description", "synopsis") else side


def read_corpus(folder: Path) -> dict[str, list[str]]:
    """File name without .xz -> lines, of every text in the folder."""
    if not folder.is_dir():
        raise CorpusError(f"{folder} is not a folder")
    files: dict[str, list[str]] = {}
    for path in sorted(folder.iterdir()):
        name = path.name.removesuffix(".xz")
        if {"train", "valid", "test"} & set(name.split(".")[:-1]):
            files[name] = _lines(path)
    for split in ("train", "valid", "test"):
        if not any(split in name.split(".") for name in files):
            raise CorpusError(f"{folder} has no {split} files: not a corpus folder of build.py")
    for name in _promised(folder):
        if not any((folder / either).is_file() for either in (name, name.removesuffix(".xz"))):
            raise CorpusError(f"{folder / name} is missing, which {CHECKSUMS} lists: fetch it again")
    return files


def _promised(folder: Path) -> list[str]:
    """The files that the corpus is said to have."""
    path = folder / CHECKSUMS
    return [line.split()[1] for line in path.read_text(encoding="utf-8").splitlines()] if path.is_file() else []


def read_more(folder: Path) -> dict[str, list[str]]:
    """The same of a folder of more_text.py: all of it is training text."""
    paths = sorted(folder.glob("mono.more.*"))
    if not paths:
        raise CorpusError(f"{folder} has no mono.more files: not a folder of more_text.py")
    return {path.name.removesuffix(".xz").replace(".more.", ".more.train."): _lines(path) for path in paths}


def _lines(path: Path) -> list[str]:
    try:
        data = lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        return data.decode("utf-8").splitlines()
    except (lzma.LZMAError, UnicodeDecodeError) as error:
        raise CorpusError(f"{path} is damaged ({error}): fetch it again") from error


def check(files: dict[str, list[str]], thresholds: Thresholds) -> dict[tuple[str, str], list[Finding]]:
    """(held-out file, training file) -> the held-out lines that have a near-duplicate there, with the first one.

    Raises:
        CorpusError: a training file's language has no held-out lines to compare with.
    """
    findings: dict[tuple[str, str], list[Finding]] = {}
    for held_split, train_splits in (("valid", {"train"}), ("test", {"train", "valid"})):
        held = [name for name in files if held_split in name.split(".")]
        train = [name for name in files if train_splits & set(name.split("."))]
        for train_name in train:
            lang = language(train_name)
            same = [name for name in held if language(name) == lang]
            absent = [name for name in same if not files[name]] if same else [f"{held_split}.{lang}"]
            if absent:
                raise CorpusError(f"{absent[0]} is missing or empty, so {train_name} cannot be compared with it")
            lines = [line for name in same for line in files[name]]
            found = resembled(lines, files[train_name], lang, thresholds, f"{held_split} against {train_name}")
            for held_name in same:
                leaks = [(line, found[line]) for line in files[held_name] if line in found]
                findings[held_name, train_name] = leaks
    return findings


def main(argv: list[str] | None = None) -> int:
    """Print the table; 0 if nothing leaks, 1 if something does, 2 if it could not be checked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="corpus folder, compressed or plain")
    parser.add_argument("--more", type=Path, metavar="FOLDER", help="check the training text of this folder as well")
    parser.add_argument("--bigrams", type=float, default=STRICT.bigrams, help=f"default {STRICT.bigrams}")
    parser.add_argument("--words", type=float, default=STRICT.words, help=f"default {STRICT.words}")
    parser.add_argument("--containment", type=float, default=STRICT.containment, help=f"default {STRICT.containment}")
    parser.add_argument("--max", type=int, default=0, help="held-out lines per pair of files that may leak (default 0)")
    parser.add_argument("--examples", type=int, default=3, help="leaks to show for each pair of files (default 3)")
    args = parser.parse_args(argv)
    limits = Thresholds(args.bigrams, args.words, args.containment, STRICT.min_contained, STRICT.max_whole)
    try:
        files = {**read_corpus(args.folder), **(read_more(args.more) if args.more else {})}
        findings = check(files, limits)
    except (CorpusError, OSError) as error:
        print(f"check_split.py: {error}", file=sys.stderr)
        return 2
    for (held, train), leaks in findings.items():
        print(f"{held} ({len(files[held])} lines) in {train} ({len(files[train])} lines): {len(leaks)}")
        for line, like in leaks[: args.examples]:
            print(f"    held out: {line}\n    training: {like}")
    worst = max(map(len, findings.values()), default=0)
    print(f"{sum(map(len, findings.values()))} near-duplicates; at most {worst} for one pair of files")
    return 1 if worst > args.max else 0


if __name__ == "__main__":
    sys.exit(main())
