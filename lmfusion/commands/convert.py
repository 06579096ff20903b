"""``lmfusion convert``: a checkpoint of the paper's released code as one of ours."""

from __future__ import annotations

import argparse
import ast
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command
from lmfusion.errors import InputError


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "convert a checkpoint of the paper's released code (2019)"
    parser = add_command(
        commands,
        "convert",
        text,
        "lmfusion convert released.pt --dict dict.txt --out cloze.pt",
        "lmfusion convert wmt18.pt --src-dict dict.en.txt --tgt-dict dict.de.txt --lm cloze.pt --out ende.pt",
    )
    parser.add_argument("checkpoint", metavar="IN", help="language model or sequence-to-sequence model, as released")
    parser.add_argument("--out", metavar="OUT", help="checkpoint to write; may be left out with --check")
    parser.add_argument("--dict", metavar="DICT", help="dict.txt it was trained with (of both sides)")
    parser.add_argument("--src-dict", metavar="DICT", help="dict.txt of the source side, where the sides differ")
    parser.add_argument("--tgt-dict", metavar="DICT", help="dict.txt of the target side, where the sides differ")
    parser.add_argument(
        "--lm",
        metavar="LM",
        action="append",
        default=[],
        help="file of the language model inside (released format or ours), for what cannot be seen in its weights: "
        "only its flags are read; twice for two",
    )
    parser.add_argument("--src-lm", metavar="LM", help="the same of the source side, where it is not clear")
    parser.add_argument("--tgt-lm", metavar="LM", help="the same of the target side, where it is not clear")
    known = "a flag of its training that it does not know, e.g. decoder_attention_heads=16; several times for several"
    for flag, owner in (("--arg", ""), ("--src-lm-arg", " (source LM)"), ("--tgt-lm-arg", " (target LM)")):
        parser.add_argument(flag, metavar="NAME=VALUE", action="append", default=[], help=known + owner)
    parser.add_argument(
        "--check",
        metavar="SAMPLE",
        help="print what every layer makes of a sentence: tokens as in the training data, separated by spaces; for a "
        "sequence-to-sequence model SOURCE or 'SOURCE ||| TARGET'",
    )
    parser.add_argument(
        "--drop-meters", action="store_true", help="read past the running averages that the released code saves"
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion convert IN --dict DICT --out OUT``.

    Raises:
        InputError: if flags contradict each other, or the checkpoint cannot be read or converted.
    """
    lmfusion.install()
    from lmfusion.convert import Inputs, convert, summarize

    logging.getLogger("hydra").setLevel(logging.WARNING)  # no news of its own start
    if args.out is None and args.check is None:
        raise InputError("nothing to do: give --out FILE to write the converted checkpoint, or --check SAMPLE.")
    given = [args.checkpoint, args.dict, args.src_dict, args.tgt_dict, *args.lm, args.src_lm, args.tgt_lm]
    if args.out is not None and Path(args.out).resolve() in {Path(path).resolve() for path in given if path}:
        raise InputError(f"--out {args.out} is one of the files to be read: give another name.")
    inputs = Inputs(
        dictionary=args.dict,
        dictionaries={side: path for side, path in (("src", args.src_dict), ("tgt", args.tgt_dict)) if path},
        lm=args.lm,
        lms={side: path for side, path in (("src", args.src_lm), ("tgt", args.tgt_lm)) if path},
        args=_values(args.arg),
        lm_args={"src": _values(args.src_lm_arg), "tgt": _values(args.tgt_lm_arg)},
        drop_meters=args.drop_meters,
    )
    converted = convert(args.checkpoint, inputs)
    if args.check is not None:
        for line in summarize(converted.model, args.check).lines():
            print(line)
    if args.out is not None:
        converted.write(args.out)
        count = sum(parameter.numel() for parameter in converted.model.parameters())
        print(f"wrote {args.out}: {converted.checkpoint['cfg']['model']['_name']}, {count:,} parameters")


def _values(given: Sequence[str]) -> dict[str, Any]:
    """Parse ``NAME=VALUE`` arguments of the command line into Python values by name."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not (name.isidentifier() and equals):
            raise InputError(f"{text!r} is no NAME=VALUE, as in decoder_attention_heads=16.")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value  # a word
    return values
