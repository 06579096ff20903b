"""BPE text -> fairseq's binary data: filter, then `fairseq-preprocess` with the given dictionary on every side."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain, islice
from pathlib import Path

from lmfusion.child_processes import die_with_parent
from lmfusion.text import line_map, textio

SUMMARY = re.compile(r"fairseq_cli.preprocess\W+\[\S+\] (.+): (\d+) sents, (\d+) tokens, (\S+)% replaced")


def filter_pairs(
    sides: tuple[Path, Path],
    targets: tuple[Path, Path],
    lines: int | None,
    max_length: int,
    max_ratio: float,
) -> dict[str, int]:
    """Copy the good pairs among the first `lines` of a bitext; return counts of kept and dropped.

    A pair is dropped if a side is empty, has more than `max_length` symbols, or more than `max_ratio` times as many as
    the other (0: any ratio).

    Raises:
        DataError: nothing is left, or the bitext has fewer than `lines` pairs.
    """
    counts: Counter[str] = Counter()
    with textio.writing(targets[0]) as out_source, textio.writing(targets[1]) as out_target:
        pairs = zip(textio.read_lines(sides[0]), textio.read_lines(sides[1]))
        for source, target in islice(pairs, lines):
            verdict = judge_pair(source, target, max_length, max_ratio)
            counts[verdict] += 1
            if verdict == "kept":
                out_source.write(source + "\n")
                out_target.write(target + "\n")
        if lines is not None and sum(counts.values()) < lines:
            raise textio.DataError(f"--bitext-lines {lines}: {sides[0].name} has only {sum(counts.values())} pairs")
        if not counts["kept"]:
            why = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counts.items())
            raise textio.DataError(
                f"no training pair is left of {sum(counts.values())} ({why}); raise "
                f"--max-length or --max-ratio, or check that the two sides belong together"
            )
    return dict(counts)


def judge_pair(source: str, target: str, max_length: int, max_ratio: float) -> str:
    """Return why a pair is dropped, or "kept"."""
    lengths = sorted((source.count(" ") + 1, target.count(" ") + 1))
    if not source or not target:
        return "dropped_empty"
    if lengths[1] > max_length:
        return "dropped_long"
    if max_ratio and lengths[1] > max_ratio * lengths[0]:
        return "dropped_ratio"
    return "kept"


def filter_sentences(sources: list[Path], target: Path, max_length: int, cut: bool = False) -> dict[str, int]:
    """Copy the sentences of all files that are neither empty nor longer than `max_length` symbols; return counts.

    Args:
        sources: files in BPE symbols.
        target: file to write.
        max_length: most symbols of a line.
        cut: write longer lines in pieces of that length instead of dropping them.

    Raises:
        DataError: nothing is left.
    """
    counts: Counter[str] = Counter()
    with textio.writing(target) as stream:
        for line in chain.from_iterable(map(textio.read_lines, sources)):
            for piece in pieces(line, max_length) if cut else (line,):
                verdict = judge_pair(piece, piece, max_length, 0)
                counts[verdict] += 1
                if verdict == "kept":
                    stream.write(piece + "\n")
        if not counts["kept"]:
            raise textio.DataError(f"{', '.join(map(str, sources))}: no sentence is left ({dict(counts)})")
    return dict(counts)


def pieces(line: str, length: int) -> list[str]:
    """Return a line's symbols in pieces of at most `length`."""
    symbols = line.split(" ")
    return [" ".join(symbols[start : start + length]) for start in range(0, len(symbols), length)]


def fairseq_preprocess(work: Path, flags: list[str], log: Path) -> dict[str, dict[str, float]]:
    """Run fairseq-preprocess into folder `work`; return its counts by file name.

    Raises:
        DataError: it failed; the message has its last words and the log's path.
    """
    command = [sys.executable, "-P", "-m", "fairseq_cli.preprocess", "--destdir", str(work), *flags]
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w", encoding="utf-8") as stream:
        stream.write(" ".join(command) + "\n")
        stream.flush()
        done = subprocess.run(command, stdout=stream, stderr=stream, check=False, preexec_fn=die_with_parent())
    output = log.read_text(encoding="utf-8", errors="replace")
    if done.returncode:
        last = (output.strip().splitlines() or ["no output"])[-1]
        fix = " Free some space, then run the same command again." if "No space left" in output else ""
        raise textio.DataError(f"{work}: fairseq-preprocess failed: {last}.{fix} (all it said: {log})")
    return {
        Path(file).name: {"sentences": int(n), "tokens": int(tokens), "unknown_percent": float(p)}
        for file, n, tokens, p in SUMMARY.findall(output)
    }


def most_unknown(files: Mapping[str, Mapping[str, float]]) -> float:
    """Return the largest percentage of unknown symbols among files of :func:`fairseq_preprocess`.

    Closing symbols, which fairseq counts among a file's tokens, are none of the text's.
    """
    texts = [(file["unknown_percent"] * file["tokens"], file["tokens"] - file["sentences"]) for file in files.values()]
    return max((unknown / max(1, symbols) for unknown, symbols in texts), default=0.0)


def workers_for(path: Path) -> int:
    """Return as many processes as there are cores, but not for small files: each needs a share of the lines."""
    return max(1, min(line_map.available_cores(), textio.count_lines(path) // 1000))


@contextmanager
def making_folder(final: Path) -> Iterator[Path]:
    """Make an empty folder under a partial name; it gets its name only if the block ends without an exception."""
    work = textio.partial_name(final)
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    try:
        yield work
        work.replace(final)
    except BaseException:
        shutil.rmtree(work, ignore_errors=True)
        raise
