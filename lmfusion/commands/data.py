"""``lmfusion data``: text of one's own, made ready for training."""

from __future__ import annotations

import argparse
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.commands.parsers import add_command, check_seed
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.text.own_request import Request
    from lmfusion.text.prepared import Prepared

KINDS = ("pairs", "tsv", "jsonl", "tmx")


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "make sentence pairs and plain text ready for training"
    parser = add_command(
        commands,
        "data",
        text,
        "lmfusion data --pairs train.en train.fr --text plain.en plain.fr --held-out 1000 --out data",
        "lmfusion data --tsv pairs.tsv -s en -t fr --held-out 1000 --out data",
        "lmfusion data --pairs train.en train.fr --src-hf xlm-r --held-out 1000 --out data",
        "lmfusion data --jsonl articles.jsonl --fields text,summary --text-lang en --held-out 500 --out data",
        more=": split, tokenized, in BPE symbols, binarized. Run it again: it does only what is missing.",
    )
    _add_files(parser)
    _add_settings(parser)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to fill")
    parser.set_defaults(check=_check, run=run)


def _add_files(parser: argparse.ArgumentParser) -> None:
    pairs = parser.add_argument_group("sentence pairs, one of (plain, .gz or .xz)").add_mutually_exclusive_group()
    two: dict[str, Any] = {"nargs": 2, "type": Path, "metavar": "FILE"}
    pairs.add_argument("--pairs", **two, help="two files, parallel line by line, such as train.en train.fr")
    pairs.add_argument("--tsv", type=Path, metavar="FILE", help="two columns; others than the first two by --fields")
    pairs.add_argument("--jsonl", type=Path, metavar="FILE", help="an object a line; its keys by --fields")
    pairs.add_argument("--tmx", type=Path, metavar="FILE", help="a translation memory; needs -s and -t")
    files = parser.add_argument_group("what they are, and what else there is")
    files.add_argument("--fields", metavar="A,B", help="source and target: columns (names or numbers) or keys")
    files.add_argument("-s", "--source-lang", metavar="XX", help="language of the source (default: the file's ending)")
    files.add_argument("-t", "--target-lang", metavar="XX", help="of the target")
    files.add_argument("--text-lang", metavar="XX", help="language of both sides, where one is the other's summary")
    files.add_argument(
        "--text", action="extend", nargs="+", type=Path, default=[], metavar="FILE",
        help="plain text for the language models, plain.en plain.fr … (default: the training pairs' own sides)",
    )  # fmt: skip
    files.add_argument("--held-out", type=int, default=1000, metavar="N", help="pairs for valid, and for test (1000)")
    files.add_argument("--valid", **two, help="pairs of your own to validate on instead")
    files.add_argument("--test", **two, help="pairs of your own to test on instead")
    files.add_argument("--seed", type=int, default=1, metavar="N", help="another one holds out other pairs (1)")


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("symbols")
    bpe = group.add_mutually_exclusive_group()
    bpe.add_argument("--bpe-size", type=int, metavar="N", help="BPE symbols (default: by the amount of text)")
    bpe.add_argument("--spm", type=Path, metavar="FILE", help="take over this sentencepiece model …")
    group.add_argument("--dict", type=Path, metavar="FILE", help="… with its dictionary (default: dict.txt beside it)")
    tokenizer = "before the BPE (default: none, sentencepiece reads the text as it is; with --spm, as that was made)"
    group.add_argument("--tokenizer", choices=("none", "moses"), help=tokenizer)
    for side, name in (("src", "source"), ("tgt", "target")):
        text = f"encode the {name} with the tokenizer of this Hugging Face model, in place of tokenizer and BPE"
        group.add_argument(f"--{side}-hf", type=Path, metavar="FOLDER", help=text)
    group.add_argument("--max-length", type=int, default=250, metavar="N", help="most symbols of a sentence (250)")
    group.add_argument("--max-ratio", type=float, metavar="X", help="of a pair's lengths (3; 0, any: for summaries)")
    group.add_argument("--workers", type=int, metavar="N", help="processes (default: one a core)")


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion data … --out DIR``."""
    _check(args)
    from lmfusion.rows.amounts import rows
    from lmfusion.text.own_data import Settings, make

    request = _request(args)
    names = ("max_length", "max_ratio", "workers", "bpe_size", "tokenizer")
    chosen = {name: getattr(args, name) for name in names}
    models = {"source_model": args.src_hf, "target_model": args.tgt_hf}
    made = make(request, args.out, Settings(bpe_model=args.spm, dictionary=args.dict, **models, **chosen))
    sides = {"src": made.source, "tgt": made.target}
    _say_how_scored(made)
    flags = "".join(f" --{flag}-lm FOLDER" for flag, side in sides.items() if side in made.tokenizers)
    print(f"Next: lmfusion train {shlex.quote(str(args.out))} --rows {rows(made)}{flags} --out runs/mine", flush=True)


def _say_how_scored(made: Prepared) -> None:
    """Say what BLEU will count where that is not words between spaces; summaries are scored by ROUGE."""
    from lmfusion.scoring.bleu_metric import how_counted
    from lmfusion.text.prepared import TRANSLATION

    if made.kind == TRANSLATION and (line := how_counted(made.target)):
        print(f"note: {line}", flush=True)


def _check(args: argparse.Namespace) -> None:
    """Refuse flags that do not go together."""
    if not any(getattr(args, kind) for kind in KINDS):
        raise InputError("no sentence pairs: give --pairs FILE FILE, or one of --tsv, --jsonl and --tmx FILE.")
    if args.dict and not args.spm:
        raise InputError("--dict needs --spm: a dictionary belongs to its BPE.")
    if args.src_hf and args.tgt_hf and (args.spm or args.bpe_size):
        raise InputError("--src-hf and --tgt-hf leave no side for a BPE: leave out --bpe-size and --spm.")
    for flag, least in (("held_out", 1), ("max_length", 2), ("bpe_size", 1), ("workers", 1)):
        if (value := getattr(args, flag)) is not None and value < least:
            raise InputError(f"--{flag.replace('_', '-')} {value}: give a number of at least {least}.")
    check_seed(args.seed)
    if args.max_ratio is not None and args.max_ratio != 0 and not 1 <= args.max_ratio < math.inf:
        raise InputError(f"--max-ratio {args.max_ratio:g}: give 1 or more, longer side over shorter; 0 for any.")


def _request(args: argparse.Namespace) -> Request:
    from lmfusion.text.languages import name_sides
    from lmfusion.text.own_request import Request

    fields = tuple(args.fields.split(",")) if args.fields else None
    if fields and (len(fields) != 2 or not all(fields)):
        raise InputError(f"--fields {args.fields}: name the source's and the target's, with a comma between them.")
    if fields and fields[0] == fields[1]:
        raise InputError(f"--fields {args.fields}: names the same text as source and as target. Name two.")
    source, target = name_sides((args.source_lang, args.target_lang), args.pairs, fields, args.text_lang)
    given: dict[str, Any] = {name: getattr(args, name) for name in ("tsv", "jsonl", "tmx", "held_out", "seed")}
    for name in ("pairs", "valid", "test"):
        given[name] = tuple(getattr(args, name)) if getattr(args, name) else None
    return Request(
        source=source,
        target=target,
        fields=fields,
        text=tuple(args.text),
        text_language=args.text_lang,
        **given,
    )
