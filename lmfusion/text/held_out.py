"""Choosing the pairs of valid and test by hash, and taking everything that resembles them out of train.

A pair's rank is a hash of its two texts and the seed, so it never depends on where the pair stands or what else there
is. The N pairs of the lowest ranks are held out, with one ranking for test and another for valid. When text is added,
a pair is replaced only by an added one of lower rank: with a tenth more text about a tenth of the held-out pairs change
places with train, and almost none go from test to valid.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from array import array
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from lmfusion.text.textio import DataError

Hashes = NDArray[np.uint64]
_UNSEEN = re.compile("[\u200b-\u200f\u2060\ufeff]")
"""Joiners, marks of direction and spaces without width."""
TRAIN, VALID, TEST, DUPLICATE, RESEMBLES, EMPTY = range(6)
SPLITS = {"train": TRAIN, "valid": VALID, "test": TEST}


def fold(text: str) -> str:
    """Return a cleaned text as texts are compared: without regard to capitals, or to what nobody sees.

    Letters with marks are compared in one form (NFC), and characters without width left out. Text that is in NFC and
    has none of these gives what it always gave, so that it is split as before.
    """
    return unicodedata.normalize("NFC", _UNSEEN.sub("", text)).casefold()


def digest(text: str, size: int = 8) -> bytes:
    """Return a hash of a text, `size` bytes."""
    return hashlib.blake2b(text.encode(), digest_size=size).digest()


class PairHashes:
    """Hashes of a stream of pairs, 8 bytes each, instead of their texts.

    Attributes:
        source: of the folded source texts, one a pair; 0 for a pair with an empty side, as in all others.
        target: of the folded target texts.
        exact: of the whole pairs as they are.
        ranks: of the folded pairs and the seed; those of "test" and those of "valid".
        lengths: numbers of characters, pairs x 2.
    """

    def __init__(self, pairs: Iterable[tuple[str, str]], seed: int) -> None:
        digests, lengths = bytearray(), array("I")
        for source, target in pairs:
            lengths.extend((len(source), len(target)))
            digests += _digests(source, target, seed)
        table = np.frombuffer(digests, "<u8").reshape(-1, 5)
        self.source, self.target, self.exact = table[:, 0], table[:, 1], table[:, 2]
        self.ranks = {"test": table[:, 3], "valid": table[:, 4]}
        self.lengths = np.array(lengths, dtype=np.int64).reshape(-1, 2)

    def __len__(self) -> int:
        """Return the number of pairs, those with an empty side included."""
        return len(self.source)

    @property
    def empty(self) -> NDArray[np.bool_]:
        """Return which pairs have an empty side."""
        return (self.lengths == 0).any(axis=1)


def _digests(source: str, target: str, seed: int) -> bytes:
    if not source or not target:
        return bytes(40)
    left, right = fold(source), fold(target)
    return b"".join(
        (digest(left), digest(right), digest(f"{source}\n{target}"), digest(f"{seed}\n{left}\n{right}", 16))
    )


def assign(
    pairs: PairHashes,
    held_out: int,
    splits: Iterable[str],
    given: Iterable[PairHashes],
    longest: tuple[int | None, int | None] = (None, None),
) -> NDArray[np.uint8]:
    """Return what becomes of each pair: TRAIN, VALID, TEST, or why it is left out.

    Args:
        pairs: all pairs to be split.
        held_out: how many pairs each of `splits` gets.
        splits: "test", "valid", or both: those that are split off.
        given: pairs of valid and test sets that exist; what resembles them is left out.
        longest: most characters of a source and of a target that is held out; None: any.

    A pair that is exactly as an earlier one is left out (DUPLICATE): repeated pairs are mostly accidents of collecting,
    and would count more than once in training. One whose source or target is that of a held-out pair, whatever the
    capitals, is left out too (RESEMBLES): half of the answer would be known.

    Raises:
        DataError: there are too few pairs.
    """
    fate = np.full(len(pairs), DUPLICATE, np.uint8)
    fate[np.unique(pairs.exact, return_index=True)[1]] = TRAIN
    fate[pairs.empty] = EMPTY
    for other in given:
        _leave_out(fate, pairs, other.source, other.target)
    splits = [split for split in ("test", "valid") if split in splits]
    fit = _fit(pairs, longest)
    _check_enough(int((fit & (fate == TRAIN)).sum()), held_out, len(splits))
    for split in splits:
        chosen = _draw(pairs, fit & (fate == TRAIN), held_out, split)
        fate[chosen] = SPLITS[split]
        _leave_out(fate, pairs, pairs.source[chosen], pairs.target[chosen])
    if not (fate == TRAIN).any():
        raise DataError("every training pair has a side in common with a held-out pair: nothing is left to train on.")
    return fate


def _leave_out(fate: NDArray[np.uint8], pairs: PairHashes, sources: Hashes, targets: Hashes) -> None:
    same = np.isin(pairs.source, sources) | np.isin(pairs.target, targets)
    fate[same & (fate == TRAIN)] = RESEMBLES


def _check_enough(available: int, held_out: int, splits: int) -> None:
    if 2 * splits * held_out > available:
        most = available // (2 * splits)
        if not most:
            raise DataError(f"{available:,} different pairs are too few to split anything off. Give more text.")
        raise DataError(
            f"--held-out {held_out}: would take {splits * held_out:,} of the {available:,} different pairs that can "
            f"be held out, more than half. Give --held-out {min(most, max(1, available // 20))}, at most {most}."
        )


def _fit(pairs: PairHashes, longest: tuple[int | None, int | None]) -> NDArray[np.bool_]:
    fit = np.ones(len(pairs), np.bool_)
    for side, limit in enumerate(longest):
        if limit is not None:
            fit &= pairs.lengths[:, side] <= limit
    return fit


def _draw(pairs: PairHashes, fit: NDArray[np.bool_], count: int, split: str) -> list[int]:
    """Return the places of the `count` fit pairs of lowest rank no two of which share a side."""
    candidates = np.flatnonzero(fit)
    order = candidates[np.lexsort((pairs.exact[candidates], pairs.ranks[split][candidates]))]
    chosen: list[int] = []
    seen: tuple[set[int], set[int]] = (set(), set())
    for place in order:
        sides = int(pairs.source[place]), int(pairs.target[place])
        if len(chosen) == count:
            break
        if sides[0] not in seen[0] and sides[1] not in seen[1]:
            chosen.append(int(place))
            for known, side in zip(seen, sides):
                known.add(side)
    if len(chosen) < count:
        raise DataError(
            f"--held-out {count}: only {len(chosen):,} pairs can be held out for {split} of which no two have a side "
            f"in common. Give a smaller number, or text that repeats itself less."
        )
    return chosen
