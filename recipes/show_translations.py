"""Show a model's translations of a few lines of a corpus folder, beside source and reference.

python recipes/show_translations.py MODEL FOLDER SPLIT SRC TGT COUNT
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import lmfusion
from lmfusion.errors import LMFusionError
from lmfusion.text import textio
from lmfusion.text.corpus import SUFFIXES

LONGEST = 90
"""Characters of a line that is shown."""


def main() -> int:
    """Run the command and return its exit status."""
    model, folder, split, source, target, count = sys.argv[1:]
    for name in ("fairseq", "lmfusion"):
        logging.getLogger(name).setLevel(logging.WARNING)
    try:
        sides = [_lines(Path(folder), f"{split}.{side}") for side in (source, target)]
        shown = spread([pair for pair in zip(*sides) if max(map(len, pair)) <= LONGEST], int(count))
        translations = lmfusion.load_model(model).translate([pair[0] for pair in shown])
    except LMFusionError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for (line, reference), translation in zip(shown, translations):
        print(f"  source       {line}\n  reference    {reference}\n  translation  {translation}\n", flush=True)
    return 0


def spread(pairs: list[tuple[str, ...]], count: int) -> list[tuple[str, ...]]:
    """Return so many of the pairs, from the first to the last in even steps."""
    step = max(1, len(pairs) // max(1, count))
    return pairs[::step][:count]


def _lines(folder: Path, name: str) -> list[str]:
    path = next(
        (folder / f"{name}{suffix}" for suffix in SUFFIXES if (folder / f"{name}{suffix}").is_file()), folder / name
    )
    return list(textio.read_lines(path))


if __name__ == "__main__":
    sys.exit(main())
