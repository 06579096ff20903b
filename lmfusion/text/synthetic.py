"""A corpus folder whose training pairs are joined by made-up ones: back-translated, self-trained, copied or distilled.

    python -m lmfusion.text.synthetic CORPUS -s en -t de --pairs 10000 --add made.en mono.de --out CORPUS-WITH-THEM

The made-up pairs are two files of as many lines, one of which a model wrote (Sennrich et al. 2016, arXiv 1511.06709;
Currey et al. 2017; Kim and Rush 2016, arXiv 1606.07947).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest
from pathlib import Path

from lmfusion.text import textio
from lmfusion.text.corpus import BITEXT_SPLITS, Corpus

Pair = tuple[str, str]


def parse_args(words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, metavar="CORPUS", help="folder with train.en, train.de and so on")
    parser.add_argument("-s", "--source-lang", required=True, metavar="LANG")
    parser.add_argument("-t", "--target-lang", required=True, metavar="LANG")
    parser.add_argument("--pairs", metavar="N", default="all", help="first N training pairs of it (default: all)")
    parser.add_argument(
        "--upsample", type=int, default=1, metavar="K", help="each of them K times; 0: none (default: 1)"
    )
    parser.add_argument(
        "--add", type=Path, nargs=2, required=True, metavar=("SOURCE", "TARGET"), help="files of the made-up pairs"
    )
    parser.add_argument("--tag", default="", metavar="WORD", help="put in front of each made-up source, e.g. <BT>")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="corpus folder to write")
    return parser.parse_args(words)


def made_up(source: Path, target: Path, tag: str) -> Iterator[Pair]:
    """Yield the made-up pairs that have words on both sides, the source behind the tag.

    Raises:
        DataError: if the files have different numbers of lines.
    """
    for number, (left, right) in enumerate(zip_longest(textio.read_lines(source), textio.read_lines(target)), start=1):
        if left is None or right is None:
            shorter = source if left is None else target
            raise textio.DataError(
                f"{shorter} has {number - 1:,} lines and the other file more: they belong line by line."
            )
        if left.strip() and right.strip():
            yield f"{tag} {left}".lstrip(), right


def real(corpus: Corpus, pairs: str) -> list[Pair]:
    """Return the first training pairs of a corpus.

    Raises:
        DataError: if ``pairs`` is neither a number nor "all".
    """
    if pairs != "all" and not pairs.isdecimal():
        raise textio.DataError(f"--pairs {pairs}: give a number, or: all.")
    sides = (textio.read_lines(corpus.find(f"train.{lang}")) for lang in (corpus.source_lang, corpus.target_lang))
    return list(islice(zip(*sides), None if pairs == "all" else int(pairs)))


def main() -> None:
    """Write the corpus folder, and say what it has."""
    args = parse_args()
    if args.upsample < 0:
        raise textio.DataError(f"--upsample {args.upsample}: give 0 or more.")
    if args.out.exists():
        raise textio.DataError(f"{args.out} is there already: give another folder, or delete it.")
    corpus = Corpus(args.corpus, args.source_lang, args.target_lang, (), ())
    source, target = args.add
    added = list(made_up(source, target, args.tag))
    given = real(corpus, args.pairs) * args.upsample
    partial = args.out.with_name(f".{args.out.name}.partial")
    partial.mkdir(parents=True, exist_ok=True)
    for side, lang in enumerate((args.source_lang, args.target_lang)):
        with textio.writing(partial / f"train.{lang}") as stream:
            stream.writelines(f"{pair[side]}\n" for pair in [*given, *added])
        for split in BITEXT_SPLITS[1:]:
            with textio.writing(partial / f"{split}.{lang}") as stream:
                stream.writelines(f"{line}\n" for line in textio.read_lines(corpus.find(f"{split}.{lang}")))
    partial.rename(args.out)
    print(f"{args.out}: {len(given):,} pairs and {len(added):,} made-up ones")


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
