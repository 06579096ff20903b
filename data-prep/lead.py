#!/usr/bin/env python3
"""The lead baseline of summarization: each text's first sentences, printed as fairseq-generate prints hypotheses.

    python data-prep/lead.py test.description --sentences 1 > generate.log

Each line of the input is one text. The output is read by whatever reads fairseq-generate's: a source line (S-),
a hypothesis (H-) and a detokenized hypothesis (D-) each, the last two with a score of 0.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from lmfusion.text import textio

sys.path.insert(0, str(Path(__file__).resolve().parent / "debian"))

from debian_corpus.segment import sentences


def lead(text: str, count: int, lang: str, marker: str = "") -> str:
    """The first `count` sentences of a text, the marker between them; all of it if it has no more."""
    between = f" {marker} " if marker else " "
    return between.join(sentences(text, lang)[:count])


def main() -> None:
    """The command line.

    Raises:
        DataError: no such file, a line that is not UTF-8, or no text.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", type=Path, help="UTF-8, one text a line; may be .xz or .gz")
    parser.add_argument("--sentences", type=int, default=1, help="how many (default: 1)")
    parser.add_argument("--lang", default="en", help="language of the texts (default: en)")
    parser.add_argument("--sentence-marker", default="", metavar="TEXT", help="between the sentences (default: none)")
    args = parser.parse_args()
    if args.sentences < 1:
        raise textio.DataError(f"--sentences {args.sentences}: give a number above 0")
    number = -1
    for number, text in enumerate(textio.read_lines(args.texts)):
        summary = lead(text, args.sentences, args.lang, args.sentence_marker)
        print(f"S-{number}\t{text}\nH-{number}\t0.0\t{summary}\nD-{number}\t0.0\t{summary}")
    if number < 0:
        raise textio.DataError(f"{args.texts}: empty file. It needs one text a line.")


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
