"""Longest common subsequences, and their union over the sentences of a summary (Lin 2004, section 3.2).

https://aclanthology.org/W04-1013
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Tokens = Sequence[str]


def union_lcs(reference: Sequence[Tokens], hypothesis: Sequence[Tokens]) -> int:
    """Tokens of the reference that summary-level ROUGE-L counts as found in the hypothesis.

    Of each reference sentence, the tokens that are in its longest common subsequence with any hypothesis sentence;
    but no word more often than the whole hypothesis has it (ROUGE-1.4.1 and later).
    """
    available = Counter(token for sentence in hypothesis for token in sentence)
    hits = 0
    for sentence in reference:
        marked = {position for other in hypothesis for position in lcs_positions(sentence, other)}
        for position in sorted(marked):
            if available[sentence[position]] > 0:
                available[sentence[position]] -= 1
                hits += 1
    return hits


def lcs_positions(reference: Tokens, hypothesis: Tokens) -> list[int]:
    """Positions in the reference of one longest common subsequence, last first.

    Where there are several, it is the one that ROUGE-1.5.5 takes, for the union depends on it: walking back from both
    ends, equal tokens are taken; else the reference's token is skipped unless that would shorten the subsequence.
    """
    table = _lengths(reference, hypothesis)
    row, column, positions = len(reference), len(hypothesis), []
    while row and column:
        if reference[row - 1] == hypothesis[column - 1]:
            row, column = row - 1, column - 1
            positions.append(row)
        elif table[row - 1][column] >= table[row][column - 1]:
            row -= 1
        else:
            column -= 1
    return positions


def _lengths(reference: Tokens, hypothesis: Tokens) -> list[list[int]]:
    """Length of the longest common subsequence of the first r and the first h tokens, for each r and h."""
    known = set(hypothesis)
    above = [0] * (len(hypothesis) + 1)
    table = [above]
    for token in reference:
        if token in known:  # else the row is the one above
            row, left, corner = [0], 0, 0
            for other, up in zip(hypothesis, above[1:]):
                if token == other:
                    left = corner + 1
                elif up > left:
                    left = up
                row.append(left)
                corner = up
            above = row
        table.append(above)
    return table
