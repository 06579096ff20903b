"""Which sentence pairs are trained on: the paper's filter, shuffled once with a seed, some held out.

The training pairs are written in shuffled order, so that the first N of them are a random subset and each subset
contains the smaller ones.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from lmfusion.text import binarize, textio
from paper_corpora import lines
from paper_corpora.parallel import Sides, write_lines

MAX_TOKENS = 250
MAX_RATIO = 1.5


def select(folder: Path, langs: Sides, held_out: int, seed: int) -> Counter[str]:
    """Read tok/bitext.* and text/bitext.*; write tok/train.*, tok/valid.* and text/valid.*; return the counts.

    A pair is dropped if a side is empty, has more than 250 Moses tokens, or more than 1.5 times the other's.

    Raises:
        DataError: no more pairs are left than are to be held out.
    """
    kept, counts = judge(folder / "tok" / f"bitext.{langs[0]}", folder / "tok" / f"bitext.{langs[1]}")
    if len(kept) <= held_out:
        raise textio.DataError(
            f"{folder / 'tok'}: {len(kept):,} sentence pairs are left ({dict(counts)}), {held_out:,} are to be held out"
        )
    order = np.random.default_rng(seed).permutation(kept)
    for lang in langs:
        bitext = folder / "tok" / f"bitext.{lang}"
        write_lines(folder / "text" / f"valid.{lang}", lines.lines_at(folder / "text" / bitext.name, order[:held_out]))
        write_lines(folder / "tok" / f"valid.{lang}", lines.lines_at(bitext, order[:held_out]))
        write_lines(folder / "tok" / f"train.{lang}", lines.lines_at(bitext, order[held_out:]))
    counts.update(train=len(kept) - held_out, valid=held_out)
    return counts


def judge(source: Path, target: Path) -> tuple[np.ndarray, Counter[str]]:
    """Numbers of the good pairs, and how many were dropped for which reason.

    Raises:
        DataError: the sides have unequal numbers of lines.
    """
    sizes = textio.count_lines(source), textio.count_lines(target)
    if sizes[0] != sizes[1]:
        raise textio.DataError(
            f"{source} has {sizes[0]:,} lines but {target} has {sizes[1]:,}: the two sides must have the same number. "
            f"Delete both, and run the same command again."
        )
    counts: Counter[str] = Counter()
    good = np.zeros(sizes[0], dtype=bool)
    for number, pair in enumerate(zip(textio.read_lines(source), textio.read_lines(target))):
        verdict = binarize.judge_pair(*pair, MAX_TOKENS, MAX_RATIO)
        good[number] = verdict == "kept"
        counts[verdict] += verdict != "kept"
    return np.flatnonzero(good), counts
