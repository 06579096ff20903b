"""Split text by hash: what is held out does not depend on the order of lines, and hardly on text added later."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

from lmfusion.text.textio import DataError

BYTES = 8
LEAST_VALID, MOST_VALID, VALID_SHARE = 100, 2000, 0.01


def key(text: str, seed: int = 0) -> int:
    """Return the hash of a text, case and white space aside: 64 bits, by which it is compared and chosen."""
    plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    digest = hashlib.blake2b(plain, digest_size=BYTES, salt=seed.to_bytes(8, "big")).digest()
    return int.from_bytes(digest, "big")


def choose_pairs(pairs: Iterable[tuple[str, str]], count: int, seed: int) -> tuple[set[int], set[int]]:
    """Choose the pairs of test and of validation set: those with the lowest hashes, no side of them twice.

    Args:
        pairs: all pairs; those with an empty side are passed over.
        count: of pairs in each set.
        seed: another one chooses others.

    Returns:
        Hashes (:func:`pair_key`) of the test set's and of the validation set's pairs.

    Raises:
        DataError: there are too few.
    """
    found = np.fromiter(
        (number for pair in pairs if all(pair) for number in (pair_key(pair, seed), key(pair[0]), key(pair[1]))),
        dtype=np.uint64,
    ).reshape(-1, 3)
    sides: tuple[set[int], set[int]] = (set(), set())
    chosen: list[int] = []
    for whole, source, target in found[np.argsort(found[:, 0], kind="stable")].tolist():
        if len(chosen) == 2 * count:
            break
        if source not in sides[0] and target not in sides[1]:
            sides[0].add(source)
            sides[1].add(target)
            chosen.append(whole)
    if len(found) < 4 * count or len(chosen) < 2 * count:
        raise DataError(
            f"--held-out {count}: of {len(found):,} pairs, twice as many leave less than half to train on. Give a "
            f"smaller number, such as {max(1, len(found) // 20):,}."
        )
    return set(chosen[:count]), set(chosen[count:])


def pair_key(pair: tuple[str, str], seed: int) -> int:
    """Return the hash of a pair: 64 bits."""
    return key(f"{pair[0]}\t{pair[1]}", seed)


def choose_lines(keys: Iterable[int]) -> set[int]:
    """Choose a validation set of plain text: a hundredth of the lines, at least 100 and at most 2,000, by lowest hash.

    Args:
        keys: hashes of the lines, each once.

    Returns:
        Those of the lines that are chosen; at most a fifth of few lines.
    """
    found = np.sort(np.fromiter(keys, dtype=np.uint64))
    count = min(max(int(len(found) * VALID_SHARE), LEAST_VALID), MOST_VALID, len(found) // 5)
    return set(found[:count].tolist())
