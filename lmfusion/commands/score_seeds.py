"""``lmfusion score seeds``: two rows of trainings, each with several seeds."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from lmfusion.commands.parsers import add_command
from lmfusion.commands.score_tokenizer import tokenizer_of_files
from lmfusion.errors import InputError


def add(metrics: Any) -> None:
    """Add the metric to those of ``lmfusion score``."""
    text = "two rows of trainings with several seeds each: difference of means, interval over sentences and seeds"
    parser = add_command(
        metrics, "seeds", text, "lmfusion score seeds --hyp mix.1 mix.2 mix.3 --baseline base.1 base.2 --ref test.de"
    )
    parser.add_argument(
        "--hyp",
        metavar="FILE",
        action="extend",
        nargs="+",
        required=True,
        help="hypotheses, detokenized, one file a seed",
    )
    parser.add_argument(
        "--baseline", metavar="FILE", action="extend", nargs="+", required=True, help="those of the other row"
    )
    parser.add_argument("--ref", metavar="FILE", action="append", required=True, help="references, one per line")
    parser.add_argument(
        "--language-pair", metavar="PAIR", help="en-zh, …: how BLEU finds words (default: by --ref's ending)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion score seeds``: print BLEU and chrF2 of both rows, and the difference with its 95% interval.

    Raises:
        InputError: if a file cannot be read, or numbers of sentences differ.
    """
    from lmfusion.scoring.seeds import compare
    from lmfusion.scoring.text_files import read_lines

    for flag, files in (("--hyp", args.hyp), ("--baseline", args.baseline)):
        places = [Path(path).resolve() for path in files]
        if repeated := [path for path, place in zip(files, places) if places.count(place) > 1]:
            raise InputError(f"{flag}: {repeated[0]} is given twice. Give one file a seed.")
    system, baseline, references = (
        [read_lines(path) for path in files] for files in (args.hyp, args.baseline, args.ref)
    )
    tokenizer = tokenizer_of_files(args.language_pair, args.ref, references)
    found = compare(system, baseline, references, language_pair=args.language_pair, tokenizer=tokenizer)
    if args.json:
        print(json.dumps([result.to_dict() for result in found], indent=2))
        return
    for result in found:
        low, high = result.interval
        chance = "" if result.is_beyond_chance else ", holds 0"
        print(f"{result.metric:6} {result.system.shown()}, baseline {result.baseline.shown()}")
        print(f"       difference {result.difference:+.2f}, 95% interval {low:+.2f} to {high:+.2f}{chance}")
        print(f"       {result.signature}")
    if min(len(args.hyp), len(args.baseline)) == 1:
        print("One seed of a row says nothing of what another would change: the interval is too narrow.")
