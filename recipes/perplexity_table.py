#!/usr/bin/env python3
"""Lowest validation perplexity of each language model beside the amount of text it was trained on; parted by tabs.

    python recipes/perplexity_table.py de runs/perplexity-by-text/causal.half runs/perplexity-by-text/causal.all

The data of run folder NAME lie beside it in data.NAME, as recipes/perplexity_by_text.sh puts them.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lowest_loss import validation_loss

from lmfusion.errors import InputError, exit_status


def row(folder: Path, lang: str) -> str:
    """One line of the table: name, sentences, BPE symbols and perplexity per BPE symbol.

    Raises:
        InputError: the training has not finished, or its data are not there.
    """
    path = folder.parent / f"data.{folder.name}" / "prepare.json"
    if not path.is_file():
        raise InputError(f"{path}: no such file. The data of {folder} lie there when perplexity_by_text.sh trained it.")
    train = json.loads(path.read_text(encoding="utf-8"))["counts"][f"lm.{lang}"]["files"]["train"]
    perplexity = 2 ** validation_loss(folder)  # the loss is in bits
    return f"{folder.name}\t{train['sentences']}\t{train['tokens']}\t{perplexity:.2f}"


def _report(lang: str, folders: list[Path]) -> None:
    """Print the table, once all of it is known."""
    rows = [row(folder, lang) for folder in folders]
    print("\n".join(["model\tsentences\tsymbols\tperplexity", *rows]))


def main() -> int:
    """The command line."""
    if len(sys.argv) < 3:
        print(f"usage: {Path(__file__).name} LANG RUN…", file=sys.stderr)
        return 2
    return exit_status(lambda: _report(sys.argv[1], [Path(word) for word in sys.argv[2:]]))


if __name__ == "__main__":
    sys.exit(main())
