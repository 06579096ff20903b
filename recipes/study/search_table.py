"""The configurations that a search trained, and what it chose, as a section of the report."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path

from study.search import Setting, Tried, tries

HEADING = "Search, {size:,} pairs"
NOTE = (
    "Bits per character of the validation references, below them updates, dropout and what else is not the usual. "
    "Bold: chosen; a row without a choice is still being searched."
)


def sections(tried: Mapping[tuple[str, int, int], Tried], chosen: Iterable[tuple[str, int]]) -> str:
    """Return a table for each bitext size that was searched, with its heading; nothing where there was no search.

    Args:
        tried: configurations by row, size and number.
        chosen: rows and sizes whose search is over.
    """
    finished = set(chosen)
    sizes = dict.fromkeys(size for _, size, _ in sorted(tried, key=lambda name: name[1]))
    return "".join(f"\n## {HEADING.format(size=size)}\n\n{_table(tried, size, finished)}\n\n{NOTE}\n" for size in sizes)


def append(report: Path, text: str) -> None:
    """Add sections to a report's page, which is begun if it is not there."""
    if text:
        report.parent.mkdir(parents=True, exist_ok=True)
        with report.open("a", encoding="utf-8") as page:
            page.write(text)


def _table(tried: Mapping[tuple[str, int, int], Tried], size: int, finished: set[tuple[str, int]]) -> str:
    rows = list(dict.fromkeys(row for row, of, _ in sorted(tried) if of == size))
    count = max(tries(row, size) for row in rows)
    lines = [f"| row | {' | '.join(map(str, range(1, count + 1)))} |", f"|---|{'---:|' * count}"]
    for row in rows:
        own = {number: each for (name, of, number), each in tried.items() if (name, of) == (row, size)}
        best = min(own, key=lambda number: (own[number].bits, number)) if (row, size) in finished else 0
        cells = [_cell(own.get(number), number == best) for number in range(1, count + 1)]
        lines.append(f"| {row} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(tried: Tried | None, is_chosen: bool) -> str:
    if tried is None:
        return ""
    bits = f"{tried.bits:.3f}" if math.isfinite(tried.bits) else "diverged"
    return f"{f'**{bits}**' if is_chosen else bits}<br>{_words(tried.setting)}"


def _words(setting: Setting) -> str:
    words = [f"{setting.updates:,}", f"{setting.dropout:g}"]
    words += [f"representation {setting.representation:g}"] if setting.representation else []
    words += [f"BPE {setting.bpe:,}"] if setting.bpe else []
    return ", ".join(words)
