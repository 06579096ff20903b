"""Which of very many sentences repeat an earlier one, in bounded memory.

Sentences are told apart by 64-bit hashes, which lie in a file (8 bytes each). That file is worked through in parts by
the hash's leading bits, so that only one part is in memory: about 50 bytes times the sentences, divided by the number
of parts, plus one byte a sentence for the answer. For 300 million sentences in 64 parts that is 0.6 GB.

Two different sentences out of n share a hash with a probability of about n² / 2⁶⁵: 0.2 % for 260 million, that is, for
one sentence in the whole corpus.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

HASH_BYTES = 8
PART_SENTENCES = 1 << 23
BLOCK = 1 << 22


def sentence_hash(sentence: bytes) -> bytes:
    """64 bits of a sentence; the same on every machine."""
    return hashlib.blake2b(sentence, digest_size=HASH_BYTES).digest()


def first_occurrences(hashes: Path, part_sentences: int = PART_SENTENCES) -> np.ndarray:
    """For each hash in a file whether none before it is equal.

    Args:
        hashes: the hashes one after the other.
        part_sentences: about so many are in memory at a time.

    Returns:
        An array of bool, one for each hash.
    """
    total = hashes.stat().st_size // HASH_BYTES
    first = np.ones(total, dtype=bool)
    if total == 0:
        return first
    values = np.memmap(hashes, dtype=">u8", mode="r", shape=(total,))
    bits = max(0, (total - 1) // part_sentences).bit_length()
    for part in range(1 << bits):
        where = _positions(values, part, bits)
        chosen = values[where]
        order = np.argsort(chosen, kind="stable")  # stable: equal hashes stay in the order of the text
        chosen = chosen[order]
        repeated = np.flatnonzero(chosen[1:] == chosen[:-1]) + 1
        first[where[order[repeated]]] = False
    return first


def _positions(values: np.ndarray, part: int, bits: int) -> np.ndarray:
    """Where the hashes of one part are."""
    if bits == 0:
        return np.arange(len(values))
    found = []
    for start in range(0, len(values), BLOCK):
        leading = values[start : start + BLOCK] >> np.uint64(64 - bits)
        found.append(np.flatnonzero(leading == part) + start)
    return np.concatenate(found)
