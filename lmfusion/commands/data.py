"""``lmfusion data``: text of one's own, made ready for training."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.commands.parsers import add_command
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.text.own_request import Request


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "make sentence pairs and plain text ready for training"
    parser = add_command(
        commands,
        "data",
        text,
        "lmfusion data --pairs train.en train.fr --text plain.en plain.fr --held-out 1000 --out data",
        "lmfusion data --jsonl articles.jsonl --fields text,summary --text-lang en --held-out 500 --out data",
        more=": split, tokenized, segmented (BPE), binarized. Files may be compressed (gzip, xz).",
    )
    pairs = parser.add_argument_group("sentence pairs, one of")
    pairs.add_argument("--pairs", nargs=2, type=Path, metavar="FILE", help="two files, parallel line by line")
    pairs.add_argument("--tsv", type=Path, metavar="FILE", help="two columns; others than the first two by --fields")
    pairs.add_argument("--jsonl", type=Path, metavar="FILE", help="an object a line; its keys by --fields")
    pairs.add_argument("--tmx", type=Path, metavar="FILE", help="a translation memory")
    parser.add_argument("--fields", metavar="A,B", help="source and target: columns (names or numbers) or keys")
    parser.add_argument("--text", nargs="+", type=Path, default=[], metavar="FILE", help="plain text for the LMs")
    parser.add_argument("-s", "--source-lang", metavar="XX", help="default: the suffix of the first file of --pairs")
    parser.add_argument("-t", "--target-lang", metavar="XX")
    parser.add_argument("--text-lang", metavar="XX", help="language of both sides: summarization")
    parser.add_argument(
        "--held-out", type=int, default=1000, metavar="N", help="pairs to validate on, and to test (1000)"
    )
    parser.add_argument("--valid", nargs=2, type=Path, metavar="FILE", help="pairs of your own to validate on instead")
    parser.add_argument("--test", nargs=2, type=Path, metavar="FILE", help="pairs of your own to test on instead")
    parser.add_argument("--bpe-size", type=int, metavar="N", help="symbols (default: by the number of pairs)")
    parser.add_argument("--spm", type=Path, metavar="FILE", help="sentencepiece model to use, as of a language model …")
    parser.add_argument("--dict", type=Path, metavar="FILE", help="… with its dictionary (default: dict.txt beside it)")
    parser.add_argument("--max-length", type=int, default=250, metavar="N", help="symbols of a sentence (default: 250)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of the split (default: 1)")
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to fill")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion data … --out DIR``."""
    request = _request(args)
    from lmfusion.text.own_data import Bpe, make

    if args.spm and args.bpe_size:
        raise InputError("--spm and --bpe-size: a given BPE has its size; leave one of them out.")
    if args.dict and not args.spm:
        raise InputError("--dict needs --spm: a dictionary belongs to its BPE.")
    make(request, args.out, Bpe(args.bpe_size, args.spm, args.dict), max_length=args.max_length, workers=args.workers)


def _request(args: argparse.Namespace) -> Request:
    from lmfusion.text.own_request import Request, ending

    fields = tuple(args.fields.split(",")) if args.fields else None
    if fields and len(fields) != 2:
        raise InputError(f"--fields {args.fields}: name the source's and the target's, with a comma between them.")
    names = [args.source_lang, args.target_lang]
    for side in (0, 1):
        if not names[side] and args.pairs:
            names[side] = ending(args.pairs[side])
        elif not names[side] and fields and not fields[side].isdecimal():
            names[side] = fields[side].rsplit(".", 1)[-1]
    _check_names(names, args)
    chosen: dict[str, Any] = {name: getattr(args, name) for name in ("tsv", "jsonl", "tmx", "seed", "held_out")}
    for name in ("pairs", "valid", "test"):
        chosen[name] = tuple(getattr(args, name)) if getattr(args, name) else None
    return Request(
        source=names[0], target=names[1], fields=fields, text=tuple(args.text), text_language=args.text_lang, **chosen
    )


def _check_names(names: list[str | None], args: argparse.Namespace) -> None:
    for name, flag in zip(names, ("-s", "-t")):
        if not name or not name.replace("_", "").replace("-", "").isalnum():
            raise InputError(f"which language is the {'source' if flag == '-s' else 'target'} side? Say {flag} XX.")
    if names[0] == names[1]:
        raise InputError(f"both sides are called {names[0]}: give them names by -s and -t.")
    if not args.text_lang and any(len(str(name).split("_")[0].split("-")[0]) > 3 for name in names):
        raise InputError(
            f"{names[0]} and {names[1]} are no codes of languages. If both sides are of one language, say which: "
            f"--text-lang en. Else name the languages: -s en -t fr."
        )
