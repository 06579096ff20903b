"""``lmfusion pack``: one file to hand on."""

from __future__ import annotations

import argparse
import os
import re
import shlex
from pathlib import Path
from typing import Any

import lmfusion
from lmfusion.commands.parsers import add_command, add_user_dir
from lmfusion.errors import InputError

_FILE = re.compile(r"(?!https?:)(\S+\.(txt|md|rst|html)|(\S*/)?(LICEN[CS]E|COPYING)\S*)")
"""What stands for a file, and is no name of a licence ("CC-BY-4.0", "GPL-2.0+")."""


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write a translation model as one file to hand on"
    parser = add_command(
        commands,
        "pack",
        text,
        'lmfusion pack runs/mine/src_elmo_shdemb --out model.lmf --licence "CC BY 4.0"',
        "lmfusion translate model.lmf new.en",
        more=": weights, dictionaries, BPE, tokenizer, licence and model card.",
    )
    parser.add_argument("model", metavar="RUN", help="a run's folder (its best checkpoint), or a checkpoint")
    parser.add_argument("--out", metavar="FILE", required=True, help="file to write, such as model.lmf")
    parser.add_argument("--licence", metavar="TEXT", default="", help="its name, or a file with its text")
    parser.add_argument("--full", action="store_true", help="keep the weights in full precision: twice the size")
    parser.add_argument("--data", metavar="DIR", help="dictionaries, of a checkpoint that does not hold them")
    parser.add_argument("--spm", metavar="FILE", help="the sentencepiece model, of a checkpoint that does not hold it")
    add_user_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion pack RUN --out FILE``."""
    lmfusion.install()
    from lmfusion.checkpoint.finding import find_checkpoint
    from lmfusion.checkpoint.reading import model_config, read_file
    from lmfusion.described import own_parts, translates
    from lmfusion.inference.packing import pack
    from lmfusion.inspection import inspect_checkpoint
    from lmfusion.runs.model_card import BEST, model_card, with_licence
    from lmfusion.text import kit

    checkpoint = find_checkpoint(Path(args.model), translates)
    folder = checkpoint.parent.parent if checkpoint.parent.name == "checkpoints" else checkpoint.parent
    facts = inspect_checkpoint(checkpoint).to_dict()
    state = read_file(checkpoint, mmap=True)
    own = own_parts(model_config(checkpoint, state))
    card, licence = kit.written(checkpoint, state, kit.CARD), _licence(args.licence)
    if card:  # packed before: what was said of it then still holds
        licence = licence or kit.written(checkpoint, state, kit.LICENCE)
        card = with_licence(card, licence)
    else:
        card = model_card(folder, facts, licence, own, checkpoint.name if folder != checkpoint.parent else BEST)
    pack(checkpoint, args.out, card=card, licence=licence, half=not args.full, data=args.data, bpe_model=args.spm)
    use = f"lmfusion translate {shlex.quote(str(args.out))}"
    if own:
        use += f" --user-dir DIR, the folder that registers {' and '.join(own)}: hand it on as well"
    print(f"wrote {args.out}, {os.path.getsize(args.out) / 1e6:.1f} MB: {use}")


def _licence(given: str) -> str:
    """Return a licence's name or text as it is, or the text of its file.

    Raises:
        InputError: if it looks like a file, and there is none, or no text in it.
    """
    path = Path(given)
    if not given or not path.is_file():
        if _FILE.fullmatch(given):
            raise InputError(f"--licence {given}: there is no such file. Give its path, or the licence's name or text.")
        return given
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"--licence {given}: not UTF-8 text ({error.reason}).") from error
