"""What a folder of prepared text holds, counted in the binarized files, as a table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table
from rich.text import Text as Title

from lmfusion.text.corpus import BITEXT_SPLITS, MONO_SPLITS
from lmfusion.text.prepared import Prepared
from lmfusion.text.printable import printable
from lmfusion.text.textio import DataError

REASONS = {"dropped_empty": "empty", "dropped_long": "too long", "dropped_ratio": "of unequal length"}
UNKNOWN = 3
"""The number that every dictionary of fairseq has for it."""
AT_ONCE = 1 << 24
"""Symbols to compare."""
INDEX_MARK = b"MMIDIDX\0\0" + (1).to_bytes(8, "little")
"""First bytes of an .idx file in fairseq's format mmap, its version included."""
INDEX_HEADER = len(INDEX_MARK) + 1 + 8
"""Bytes: after the mark the type of numbers, and how many sentences; then come their sizes."""


@dataclass(frozen=True)
class Text:
    """Describe one binarized text.

    Attributes:
        name: split and side of pairs (``train en``); language and split of plain text (``text en train``).
        lines: number of sentences.
        symbols: number of BPE symbols, without the closing ones.
        longest: most symbols of a sentence.
        unknown: percentage of symbols that are not in the dictionary.
        dropped: how many lines, or pairs, were left out of it, by reason.
    """

    name: str
    lines: int
    symbols: int
    longest: int
    unknown: float
    dropped: dict[str, int]


def measure(folder: Path, sides: tuple[str, str], languages: tuple[str, ...], counts: dict[str, Any]) -> list[Text]:
    """Return every text of a prepared folder.

    Args:
        folder: the folder.
        sides: names of the source and of the target side.
        languages: of the plain text.
        counts: those of the folder's ``prepare.json``.
    """
    pair = "-".join(sides)
    files = [(f"{split} {side}", "bitext-all", f"{split}.{pair}.{side}") for split in BITEXT_SPLITS for side in sides]
    files += [(f"text {language} {split}", f"lm.{language}", split) for language in languages for split in MONO_SPLITS]
    return [_measure(folder / made / file, name, counts.get(made, {})) for name, made, file in files]


def _measure(path: Path, name: str, counts: dict[str, Any]) -> Text:
    sizes = read_sizes(path.with_name(f"{path.name}.idx"))
    unknown = count_unknown(path.with_name(f"{path.name}.bin"), int(sizes.sum()))
    symbols = int(sizes.sum()) - len(sizes)  # every sentence has a closing symbol
    dropped = counts.get("train", {}) if "train" in name.split() else {}
    reasons = {reason: dropped[key] for key, reason in REASONS.items() if dropped.get(key)}
    return Text(name, len(sizes), symbols, int(sizes.max()) - 1, 100 * unknown / max(1, symbols), reasons)


def read_sizes(index: Path) -> NDArray[np.int32]:
    """Return the number of symbols of each sentence of a binarized text, the closing one included.

    Args:
        index: the text's .idx file in fairseq's format mmap: the header, then the sizes. Importing fairseq to read them
            would take seconds.

    Raises:
        DataError: it is cut or damaged, or of another format.
    """
    with index.open("rb") as stream:
        header = stream.read(INDEX_HEADER)
    count = int.from_bytes(header[18:], "little")
    whole = len(header) == INDEX_HEADER and 0 < 12 * count <= index.stat().st_size - INDEX_HEADER
    if not (whole and header.startswith(INDEX_MARK)):
        raise DataError(f"{index}: is damaged. Delete {index.parent}, and run the same command again.")
    return np.fromfile(index, np.int32, count, offset=len(header))


def count_unknown(data: Path, symbols: int) -> int:
    """Return how many symbols of a binarized text are not in its dictionary.

    Args:
        data: the text's .bin file, the symbols' numbers one after the other.
        symbols: how many there are.
    """
    size = data.stat().st_size
    if symbols < 1 or size not in (2 * symbols, 4 * symbols, 8 * symbols):
        raise DataError(f"{data}: is damaged. Delete {data.parent}, and run the same command again.")
    numbers = np.memmap(data, f"u{size // symbols}", "r")
    return sum(
        int(np.count_nonzero(numbers[start : start + AT_ONCE] == UNKNOWN)) for start in range(0, symbols, AT_ONCE)
    )


def show(data: Prepared, texts: list[Text], left_out: dict[str, list[int]]) -> None:
    """Print the table of a folder's texts.

    Args:
        data: the folder.
        texts: what it holds.
        left_out: held-out pairs that are too long to be held out, by split.
    """
    title = f"{data.folder}: {data.source} to {data.target}, {data.pairs:,} training pairs"
    table = Table(title=Title(printable(title)), caption="symbols: of BPE; left out: for their length")
    table.add_column("text")
    for heading in ("lines", "symbols", "a line", "longest", "unknown"):
        table.add_column(heading, justify="right")
    table.add_column("left out")
    for text in texts:
        split = text.name.split()[0]
        dropped = text.dropped or ({"too long": len(left_out[split])} if split in left_out else {})
        table.add_row(
            text.name,
            f"{text.lines:,}",
            f"{text.symbols:,}",
            f"{text.symbols / max(1, text.lines):.1f}",
            f"{text.longest:,}",
            f"{text.unknown:.2g}%",
            ", ".join(f"{count:,} {reason}" for reason, count in dropped.items()),
        )
    Console(soft_wrap=False).print(table)
