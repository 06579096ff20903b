#!/usr/bin/env python3
"""Documents -> binarized text with an empty line between two of them, for fairseq-train --task bert_pretraining.

    python data-prep/documents.py --train train.txt.xz --valid valid.txt.xz --lang en --spm spm.model --dict dict.txt \\
        --out OUT --one-a-line

The text has one sentence a line and an empty line between documents; or, with --one-a-line, one document a line, which
is split into its sentences. It goes through the tokenizer and the BPE of all other data. A folder that is there is left
as it is.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from lmfusion.text import binarize, corpus, encode_bpe, textio, tokenize_text

sys.path.insert(0, str(Path(__file__).resolve().parent / "debian"))

from debian_corpus.segment import sentences


def lines_of(path: Path, lang: str, one_a_line: bool) -> Iterator[str]:
    """Yield sentences, and an empty line behind each document."""
    for line in corpus.clean_lines(path):
        if not one_a_line:
            yield line
        elif line:
            yield from sentences(line, lang)
            yield ""


def prepare(source: Path, split: str, work: Path, args: argparse.Namespace) -> None:
    """Write a split's text in BPE symbols into the folder `work`.

    Raises:
        DataError: no such file, a line that is not UTF-8, or no text.
    """
    text, tokens = work / f"{split}.text", work / f"{split}.tok"
    with textio.writing(text) as stream:
        stream.writelines(line + "\n" for line in lines_of(source, args.lang, args.one_a_line))
    tokenize_text.tokenize_file(text, tokens, args.lang, args.workers)
    encode_bpe.encode_file(tokens, work / split, args.spm, args.workers)
    for path in (text, tokens):
        path.unlink()


def main() -> None:
    """The command line.

    Raises:
        DataError: anything wrong with the input.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for split in corpus.MONO_SPLITS:
        parser.add_argument(f"--{split}", type=Path, required=True, help="text; may be .xz or .gz")
    parser.add_argument("--lang", required=True, help="its language")
    parser.add_argument("--spm", type=Path, required=True, help="sentencepiece model")
    parser.add_argument("--dict", type=Path, required=True, help="the fairseq dictionary that belongs to it")
    parser.add_argument("--out", type=Path, required=True, help="folder to make")
    parser.add_argument("--one-a-line", action="store_true", help="each line is a document, not a sentence")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    args = parser.parse_args()
    if args.out.exists():
        return
    flags = ["--only-source", "--srcdict", str(args.dict), "--workers", "1"]
    with binarize.making_folder(args.out) as work:
        for split in corpus.MONO_SPLITS:
            prepare(getattr(args, split), split, work, args)
            flags += [f"--{split}pref", str(work / split)]
        files = binarize.fairseq_preprocess(work, flags, args.out.parent / "logs" / f"{args.out.name}.log")
        for split in corpus.MONO_SPLITS:
            (work / split).unlink()
    counts = ", ".join(f"{name} {count['sentences']:,} lines" for name, count in sorted(files.items()))
    print(f"{args.out}: {counts}")


if __name__ == "__main__":
    sys.exit(textio.run_command(main))
