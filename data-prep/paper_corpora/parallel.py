"""Parallel text out of the archives: both sides checked, counted, one sentence a line."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import IO, TextIO

from tqdm import tqdm  # type: ignore[import-untyped]

from lmfusion.text import textio
from paper_corpora import archives, sgm
from paper_corpora.sources import Source
from paper_corpora.workspace import Workspace

Sides = tuple[str, str]


def extract(
    workspace: Workspace, corpora: dict[str, Sides], langs: Sides, targets: tuple[Path, Path]
) -> dict[str, int]:
    """Write the parallel corpora one after the other; return the pairs of each.

    Args:
        corpora: for each source the names of its two sides in the archive.

    Raises:
        DataError: sides of unequal length, a count other than the table's, or a damaged archive.
    """
    pairs = {}
    with ExitStack() as stack:
        outputs = [stack.enter_context(textio.writing(path)) for path in targets]
        for name, sides in tqdm(corpora.items(), desc="unpacking", unit=" corpora", leave=False, delay=5):
            path = workspace.path(name)
            with archives.damage_named(path):
                counts = {
                    side: _copy_lines(stream, outputs[sides.index(side)], f"{path}: {side}")
                    for side, stream in archives.members(path, set(sides))
                }
            pairs[name] = _checked(workspace.source(name), path, [(side, counts[side]) for side in sides], langs)
    return pairs


def _copy_lines(stream: IO[bytes], output: TextIO, name: str) -> int:
    """Copy lines with white space made single spaces; only a line feed ends a line, as both sides must agree."""
    number = 0
    try:
        for number, line in enumerate(stream, start=1):  # noqa: B007
            output.write(" ".join(line.decode("utf-8").split()) + "\n")
    except UnicodeDecodeError as error:
        raise textio.DataError(f"{name}, line {number}: not UTF-8 ({error})") from error
    return number


def _checked(source: Source, path: Path, counts: list[tuple[str, int]], langs: Sides) -> int:
    """The number of pairs, if the two sides and the table agree on it."""
    (left, n), (right, m) = counts
    if n != m:
        raise textio.DataError(
            f"{path}: {left} has {n:,} lines but {right} has {m:,}: the two sides must have the same number. Delete "
            f"{path} to fetch it again, or give another file by --local {source.name}=PATH."
        )
    expected = source.counts.get("-".join(langs))
    if expected is not None and expected.exact and expected.number != n:
        raise textio.DataError(
            f"{path}: {left} has {n:,} lines instead of {expected.number:,}. It is not the corpus of the paper; give "
            f"another file by --local {source.name}=PATH."
        )
    return n


def extract_test_set(workspace: Workspace, name: str, sides: Sides, langs: Sides, targets: tuple[Path, Path]) -> int:
    """Write the two sides of a test set as raw text; return the number of sentences.

    Raises:
        DataError: see `extract`.
    """
    path = workspace.path(name)
    with archives.damage_named(path):
        files = {
            side: archives.read_text(stream, f"{path}: {side}") for side, stream in archives.members(path, set(sides))
        }
    texts = {side: sgm.segments(text) for side, text in files.items()}
    number = _checked(workspace.source(name), path, [(side, len(texts[side])) for side in sides], langs)
    for side, target in zip(sides, targets):
        write_lines(target, texts[side])
    return number


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write a text file that is complete or not there."""
    with textio.writing(path) as stream:
        stream.writelines(line + "\n" for line in lines)
