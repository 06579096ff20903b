"""The configurations that a search trained, and what it chose, as a section of the report."""

from __future__ import annotations

import math
from collections.abc import Mapping

from study.search import Setting, Tried, tries

HEADING = "Search, {size:,} pairs"
NOTE = (
    "Bits per character of the validation references, below them updates, dropout and any other setting that differs "
    "from the default. Bold: chosen; a row without a choice is still being searched."
)


def sections(tried: Mapping[tuple[str, int, int], Tried], chosen: Mapping[tuple[str, int], Tried]) -> str:
    """Return a table for each bitext size that was searched, with its heading; nothing where there was no search.

    Args:
        tried: configurations by row, size and number.
        chosen: by row and size, of the rows whose search is over.
    """
    sizes = sorted({size for _, size, _ in tried})
    return "".join(f"\n## {HEADING.format(size=size)}\n\n{_table(tried, size, chosen)}\n\n{NOTE}\n" for size in sizes)


def _table(tried: Mapping[tuple[str, int, int], Tried], size: int, chosen: Mapping[tuple[str, int], Tried]) -> str:
    rows = sorted({row for row, of, _ in tried if of == size})
    count = max(tries(row, size) for row in rows)
    lines = [f"| row | {' | '.join(map(str, range(1, count + 1)))} |", f"|---|{'---:|' * count}"]
    for row in rows:
        best = chosen.get((row, size))
        cells = [_cell(tried.get((row, size, number)), best) for number in range(1, count + 1)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(tried: Tried | None, chosen: Tried | None) -> str:
    if tried is None:
        return ""
    bits = f"{tried.bits:.3f}" if math.isfinite(tried.bits) else "diverged"
    bits = f"**{bits}**" if chosen and tried.setting == chosen.setting else bits
    return f"{bits}<br>{_words(tried.setting)}"


def _words(setting: Setting) -> str:
    words = [f"{setting.updates:,}", f"{setting.dropout:g}"]
    words += [f"representation {setting.representation:g}"] if setting.representation else []
    words += [f"BPE {setting.bpe:,}"] if setting.bpe else []
    return ", ".join(words)
