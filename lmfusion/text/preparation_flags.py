"""The command line of data preparation."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from lmfusion.text import textio
from lmfusion.text.tokenize_text import MOSES, NO_TOKENIZER


def own_bpe_langs(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the languages of the sides with a BPE of their own, each once; the others have a model's pieces."""
    given = model_folders(args)
    sides = [side for side in (args.source_lang, args.target_lang) if side not in given]
    return ((args.text_lang,) if sides else ()) if args.text_lang else tuple(sides)


def model_folders(args: argparse.Namespace) -> dict[str, Path]:
    """Return the folders of the models whose tokenizers encode a side, by the side's name."""
    given = {args.source_lang: args.src_hf, args.target_lang: args.tgt_hf}
    return {side: folder for side, folder in given.items() if folder is not None}


def parse_args(description: str, words: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line, that of this process by default.

    Args:
        description: of the program, for --help.
        words: of the command line.

    Raises:
        DataError: flags that do not go together.
    """
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path, help="folder with train.en[.xz], mono.train.en[.xz] …")
    for flag in ("--source-lang", "--target-lang"):
        parser.add_argument(flag[1:3], flag, required=True)
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    parser.add_argument("--pairs", default="", metavar="PREFIX", help="parallel files are called PREFIX.train.…")
    parser.add_argument("--text-lang", help="language of both sides, where -s and -t are no languages")
    tokenizer = "before the BPE; none: sentencepiece reads the text as it is (default: moses)"
    parser.add_argument("--tokenizer", choices=(MOSES, NO_TOKENIZER), default=MOSES, help=tokenizer)
    parser.add_argument("--bitext-lines", type=int, help="first N pairs of train (default: all)")
    parser.add_argument("--bpe-size", type=int, help="learn a BPE with so many symbols")
    parser.add_argument("--seed", type=int, default=1, help="for learning the BPE (default: 1)")
    parser.add_argument("--spm", type=Path, help="use this sentencepiece model instead")
    parser.add_argument("--dict", type=Path, help="the fairseq dictionary written with --spm")
    for side, name in (("src", "source"), ("tgt", "target")):
        text = f"encode the {name} with the tokenizer of this Hugging Face model, in place of Moses and BPE"
        parser.add_argument(f"--{side}-hf", type=Path, metavar="FOLDER", help=text)
    parser.add_argument("--lm-langs", nargs="*", help="LM data for these (default: those of both sides)")
    parser.add_argument("--more-text", type=Path, metavar="FOLDER", help="LMs train on its mono.more.en … as well")
    parser.add_argument("--max-length", type=int, default=250, help="symbols (default: 250)")
    parser.add_argument("--max-ratio", type=float, default=1.5, help="0: any (default: 1.5)")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    args = parser.parse_args(words)
    _check(args)
    if args.lm_langs is None:
        args.lm_langs = list(own_bpe_langs(args))
    return args


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    own = own_bpe_langs(args)
    if not own and (args.spm or args.dict or args.bpe_size):
        raise textio.DataError("both sides have the pieces of a model: leave out --bpe-size, --spm and --dict")
    if own and (bool(args.spm) != bool(args.dict) or bool(args.spm) == bool(args.bpe_size)):
        raise textio.DataError("give either --bpe-size N, or --spm MODEL together with --dict DICT")
    if args.spm and not args.spm.is_file():
        raise textio.DataError(f"{args.spm}: no such file")
    if args.bitext_lines is not None and args.bitext_lines < 1:
        raise textio.DataError(f"--bitext-lines {args.bitext_lines}: give a number above 0")
    if other := set(args.lm_langs or ()) - set(own) if model_folders(args) else set():
        raise textio.DataError(
            f"--lm-langs {' '.join(sorted(other))}: that side is in the pieces of a model of Hugging Face, its "
            f"language model; leave it out"
        )
