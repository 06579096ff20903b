"""``lmfusion check-data``: refuse binarized texts that are damaged or not of their dictionaries."""

from __future__ import annotations

import argparse
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "read every token of the texts that fairseq-preprocess made, and refuse damaged ones"
    parser = add_command(commands, "check-data", text, "lmfusion check-data data/bin")
    parser.add_argument("folder", metavar="DIR[:DIR…]", help="what fairseq-train is given: *.bin, *.idx, dict.*.txt")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion check-data DIR``."""
    lmfusion.install()
    from pathlib import Path

    from lmfusion.text.check_data import check_folder

    for folder in filter(None, args.folder.split(":")):
        texts = check_folder(Path(folder))
        for text in texts:
            print(f"{text.name}: {text.sentences:,} sentences, {text.tokens:,} tokens of {text.dictionary}")
        print(f"{folder} is whole: {len(texts)} texts")
