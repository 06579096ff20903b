"""``lmfusion inspect``: what is in a checkpoint."""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmfusion
from lmfusion.checkpoint.finding import checkpoint_of, find_checkpoint
from lmfusion.commands.parsers import add_command, add_user_dir
from lmfusion.errors import InputError
from lmfusion.text.printable import printable

if TYPE_CHECKING:
    from rich.console import Console

    from lmfusion.inspection import Inspection, LanguageModel
    from lmfusion.lm.rank import LayerRank

_SENTENCES = 500
_FOLDERS = "a checkpoint, a run's folder, or a model's folder of Hugging Face (with its config.json)"


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "describe a checkpoint: kind, architecture, parameters, language models inside, mixing weights"
    parser = add_command(
        commands,
        "inspect",
        text,
        "lmfusion inspect runs/mine/checkpoints/checkpoint_best.pt",
        "lmfusion inspect xlm-r",
        "lmfusion inspect pretrained/en-cloze.pt --rank --text DATA/bpe/test.en",
    )
    checkpoint = "checkpoint of any fairseq model, or a folder of Hugging Face; with --rank whatever --src-lm takes"
    parser.add_argument("checkpoint", metavar="CKPT", help=checkpoint)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--card", action="store_true", help="print the model card and the licence of a packed model")
    rank = "how much of the states of a text is in ten directions, by layer, beside random numbers; needs --text"
    parser.add_argument("--rank", action="store_true", help=rank)
    text = "sentences, one a line: plain text if CKPT holds its BPE, else encoded as its training text was"
    parser.add_argument("--text", metavar="FILE", type=Path, help=text)
    parser.add_argument("--sentences", metavar="N", type=int, help=f"lines of it to read (default: {_SENTENCES})")
    add_user_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion inspect CKPT [--json]``."""
    from rich.console import Console

    if not args.rank and (args.text is not None or args.sentences is not None):
        raise InputError("--text and --sentences would be ignored without --rank: add it.")
    if args.rank and args.card:
        raise InputError("--card would be ignored with --rank: give one of the two.")
    lmfusion.install()
    from lmfusion.inspection import inspect_checkpoint
    from lmfusion.lm.loading import is_read

    path = Path(args.checkpoint)
    if path.is_dir() and (checkpoint_of(path) or not is_read(path)):
        args.checkpoint = str(find_checkpoint(path, otherwise=_FOLDERS))
    if args.rank:
        _show_ranks(_ranks(args), args.json, Console(highlight=False, soft_wrap=True))
        return
    if args.card:
        print(_card(args.checkpoint))
        return
    if Path(args.checkpoint).is_dir():
        _show_folder(args.checkpoint, args.json)
        return
    found = inspect_checkpoint(args.checkpoint)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        _show(found, Console(highlight=False, soft_wrap=True))


def _ranks(args: argparse.Namespace) -> list[LayerRank]:
    from lmfusion.lm.loading import load_lm
    from lmfusion.lm.rank import layer_ranks
    from lmfusion.text import textio

    if args.text is None:
        raise InputError("--rank needs sentences to compute states of: add --text FILE.")
    count = _SENTENCES if args.sentences is None else args.sentences
    if count < 1:
        raise InputError(f"--sentences {count}: give 1 or more.")
    lines = (line for line in textio.read_lines(args.text) if line.strip())
    return layer_ranks(load_lm(args.checkpoint), islice(lines, count))


def _show_ranks(found: list[LayerRank], as_json: bool, console: Console) -> None:
    if as_json:
        print(json.dumps([asdict(layer) for layer in found], indent=2))
        return
    words, channels, random = found[0].words, found[0].channels, found[0].random
    _say(console, f"singular values of the states of {words:,} words, {words:,} x {channels}")
    _say(console, f"{'':<16} {'ten largest':>12} {'their squares':>14} {'effective rank':>15}")
    for name, rank in [*((layer.layer, layer.states) for layer in found), ("random numbers", random)]:
        shares = f"{rank.share:>12.1%} {rank.share_of_squares:>14.1%} {rank.effective:>15.1f}"
        _say(console, f"{name:<16} {shares}")


def _show_folder(path: str, as_json: bool) -> None:
    """Print what the language model in a folder of Hugging Face would be to a model that reads it."""
    from lmfusion.lm.loading import load_lm

    lm = load_lm(path)
    about: dict[str, Any] = {
        "kind": lm.title,
        "parameters": sum(weight.numel() for weight in lm.parameters()),
        "symbols": len(lm.symbols),
        "channels": lm.state_dim,
        "longest_sentence": lm.max_positions(),
        "layers": lm.state_names,
    }
    if as_json:
        print(json.dumps({"path": path, **about}, indent=2))
        return
    print(f"{printable(about.pop('kind'))}\n{path}")
    for name, value in about.items():
        text = f"{value:>13,}" if isinstance(value, int) else ", ".join(value)
        print(printable(f"{name.replace('_', ' '):<17}{text}"))


def _card(path: str) -> str:
    from lmfusion.inference.packing import texts

    found = texts(path)
    if not any(found.values()):
        raise InputError(f"{path} has no model card: `lmfusion pack` writes files that have one.")
    card, licence = found.values()
    return card if licence.strip() in card else "\n".join(filter(None, (card, licence)))


def _training(lm: LanguageModel, updates: int | None) -> str:
    """Describe which part of a language model is trained, and how."""
    if lm.frozen:
        return "frozen"
    text = "trained" if lm.trained == lm.parameters else f"{lm.trained:,} of them trained"
    if lm.frozen_layers:
        text += f" (embeddings and {lm.frozen_layers} lower layer{'s' * (lm.frozen_layers > 1)} frozen)"
    if lm.lr_scale != 1.0:
        text += f" with {lm.lr_scale:g} times the learning rate"
    if lm.frozen_updates:
        so_far = " (not over yet)" if updates is not None and updates <= lm.frozen_updates else ""
        text += f" after the first {lm.frozen_updates:,} updates{so_far}"
    return text


def _say(console: Console, text: str) -> None:
    """Print a line with names of a stranger's file in it: nothing in them is markup, or a command to the terminal."""
    from rich.text import Text

    console.print(Text(printable(text)))


def _show(found: Inspection, console: Console) -> None:
    from rich.text import Text

    console.print(Text.assemble((printable(found.kind), "bold"), f", architecture {printable(found.architecture)}"))
    updates = "" if found.updates is None else f", after {found.updates:,} updates"
    _say(console, f"{found.path}{updates}")
    _show_text(found, console)
    _say(console, f"parameters   {found.total:>13,}")
    _say(console, f"  trainable  {found.trainable:>13,}")
    _say(console, f"  frozen     {found.frozen:>13,}")
    for lm in found.language_models:
        size = f"{lm.tensors} tensors, {lm.parameters:,} parameters"
        _say(console, f"{lm.side} side: {lm.kind}, {lm.fusion}, {size}, {_training(lm, found.updates)}")
        if lm.dictionary_hash:
            _say(console, f"  dictionary {lm.dictionary_hash[:16]}…, LM as pretrained {str(lm.fingerprint)[:16]}…")
    for start in found.starts:
        about = f"{start['kind']}, as pretrained {str(start['fingerprint'])[:16]}…"
        side = "both sides" if start["side"] == "both" else f"{start['side']} side"
        _say(console, f"{side}: started from a {about}; {start['fusion']}, all of it is trained")
    if found.prior is not None:
        about = ", ".join(f"{name} {value}" for name, value in found.prior.items())
        _say(console, f"trained with a prior, which is not inside and only resuming needs: {about}")
    for mix in found.mixes:
        _say(console, f"{mix.side} side mixes its layers, gamma {mix.gamma:.3f}")
        largest = max(mix.shares.values())
        for name, share in mix.shares.items():
            bar = "█" * max(1, round(40 * share / largest)) if math.isfinite(share) else ""
            console.print(Text.assemble(f"  {printable(name):<10} {share:6.1%} ", (bar, "cyan")))


def _show_text(found: Inspection, console: Console) -> None:
    """Print what a checkpoint holds to read and write plain text, and the licence of a packed model."""
    if found.text is not None:
        words = " and ".join(f"{count:,}" for count in found.text["dictionaries"])
        inside = {
            "BPE": found.text["bpe"],
            "tokenizer": found.text["tokenizer"],
            "dictionaries of": words and f"{words} symbols",
        }
        languages = " to ".join(found.text["languages"])
        text = ", ".join(f"{name} {value}" for name, value in inside.items() if value)
        _say(console, f"{languages}{': ' * bool(languages)}{text}, all inside")
    if found.licence is not None:
        licence = f"licence {found.licence}" if found.licence else "no licence given"
        _say(console, f"packed, {licence}; its model card: lmfusion inspect --card")
