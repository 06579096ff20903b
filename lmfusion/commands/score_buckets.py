"""``lmfusion score buckets``: systems on the parts of a test set, by length, rare words, names and known phrases."""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.commands.parsers import add_command
from lmfusion.commands.score_tokenizer import tokenizer_of_files
from lmfusion.errors import InputError, check_name

if TYPE_CHECKING:
    from lmfusion.scoring.buckets import PartScores


def add(metrics: Any) -> None:
    """Add the metric to those of ``lmfusion score``."""
    text = "where systems differ: BLEU by length, rare words, names to copy and phrases that a language model has read"
    example = "lmfusion score buckets --hyp baseline=base.de mix=mix.de --src test.en --ref test.de --out figures"
    parser = add_command(metrics, "buckets", text, example)
    text = "two or more systems; the first is what the others are compared with"
    parser.add_argument("--hyp", metavar="NAME=FILE", action="extend", nargs="+", required=True, help=text)
    parser.add_argument("--src", metavar="FILE", required=True, help="raw source text, one sentence per line")
    parser.add_argument("--ref", metavar="FILE", required=True, help="raw reference text")
    parser.add_argument("--train", metavar="FILE", help="raw target side of the training pairs, for rare words")
    parser.add_argument("--lm-text", metavar="FILE", help="raw text of a target-side language model, for phrases")
    parser.add_argument(
        "--language-pair", metavar="PAIR", help="en-zh, …: how BLEU finds words (default: by --ref's ending)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="write the figure there, buckets.svg and buckets.png")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion score buckets``: print a table with a line for each part, and write the figure if asked.

    Raises:
        InputError: if a file cannot be read, numbers of sentences differ, or fewer than two systems are named.
    """
    from lmfusion.scoring import buckets
    from lmfusion.text.textio import read_lines

    named = dict(_named(word) for word in args.hyp)
    if len(named) < len(args.hyp):
        raise InputError("--hyp: two systems have the same name: give each its own.")
    if len(named) < 2:
        raise InputError("--hyp: name two systems or more, baseline=FILE mix=FILE.")
    sources, references = (list(read_lines(Path(path))) for path in (args.src, args.ref))
    if len(sources) != len(references):
        raise InputError(
            f"{args.src} has {len(sources)} lines and {args.ref} {len(references)}: they must be parallel."
        )
    systems = {name: list(read_lines(path)) for name, path in named.items()}
    more = {"training_targets": args.train, "lm_text": args.lm_text}
    if args.out is not None:
        check_name(Path(args.out))
    texts = {name: read_lines(Path(path)) for name, path in more.items() if path}
    divided = buckets.parts(sources, references, **texts)
    tokenizer = tokenizer_of_files(args.language_pair, [args.ref], [references])
    found = buckets.score(divided, systems, references, args.language_pair, tokenizer)
    shares = {
        question: {name: share(sources, references, lines) for name, lines in systems.items()}
        for question, share in buckets.SHARES.items()
    }
    if args.json:
        rows = [
            {"question": each.part.question, "part": each.part.name, "sentences": len(each.part.lines), **each.bleu}
            for each in found
        ]
        print(json.dumps({"bleu": rows, **_plain(shares)}, indent=2, ensure_ascii=False))
    else:
        _show(found, shares)
    if args.out is not None:
        _draw(found, Path(args.out))


def _named(word: str) -> tuple[str, Path]:
    name, separator, path = word.partition("=")
    if not separator or not name or not path:
        raise InputError(f"--hyp {word}: give NAME=FILE.")
    return name, Path(path)


def _plain(shares: Mapping[str, Mapping[str, float]]) -> dict[str, dict[str, float | None]]:
    return {
        question: {name: None if math.isnan(share) else share for name, share in each.items()}
        for question, each in shares.items()
    }


def _show(found: list[PartScores], shares: Mapping[str, Mapping[str, float]]) -> None:
    from lmfusion.scoring.buckets import SAID

    first, *others = found[0].bleu
    print("| | sentences | " + " | ".join(name.replace("|", "\\|") for name in (first, *others)) + " |")
    print("|---|---:|" + "---:|" * (1 + len(others)))
    for each in found:
        cells = [f"{each.bleu[first]:.2f}"]
        cells += [f"{each.bleu[name]:.2f} ({each.bleu[name] - each.bleu[first]:+.2f})" for name in others]
        print(f"| {each.part.question}: {each.part.name} | {len(each.part.lines):,} | {' | '.join(cells)} |")
    for question, systems in shares.items():
        cells = ["none" if math.isnan(share) else f"{share:.1%}" for share in systems.values()]
        print(f"| {SAID[question]} | | {' | '.join(cells)} |")


def _draw(found: list[PartScores], out: Path) -> None:
    from lmfusion.report.page.buckets_figure import buckets_figure

    figure = buckets_figure(found)
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{figure.name}.svg").write_text(figure.svg, encoding="utf-8")
    (out / f"{figure.name}.png").write_bytes(figure.png)
    print(f"{out / figure.name}.svg and .png written", file=sys.stderr)  # what --json prints stays JSON
