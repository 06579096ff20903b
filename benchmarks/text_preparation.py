"""Tokenization and BPE of plain text: sentences a second, beside sacremoses' own tokenizer.

    lmfusion bench text_preparation [--sentences N] [--compared N] [--text FILE] [--lang LANG] [--json FILE]

The text is the embedded corpus's English, repeated as often as it takes. First both tokenizers read the same sentences
in turn in one process, and that they write the same is checked; then data preparation's own commands go through all
sentences, with as many processes as threads were asked for, and show their progress.
"""

from __future__ import annotations

import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path

import sacremoses
from options import flags, parse
from results import Table, report
from timing import Spread, alternate, seconds

from lmfusion.text import encode_bpe, moses, textio, tokenize_text

ROOT = Path(__file__).resolve().parents[1]

CORPUS = ROOT / "data-prep" / "debian" / "en-de" / "mono.train.en.xz"
MODEL = ROOT / "pretrained" / "spm.model"


def compare(sentences: list[str], lang: str, rounds: int) -> dict[str, Spread]:
    """Seconds of both tokenizers on the same sentences, in turn.

    Raises:
        SystemExit: they do not write the same.
    """
    options = tokenize_text.moses_options(tokenize_text.tokenizer_flags())
    both = {"sacremoses": sacremoses.MosesTokenizer(lang), "data-prep": moses.MosesTokenizer(lang)}

    def tokenize(name: str) -> list[str]:
        return [both[name].tokenize(sentence, return_str=True, **options) for sentence in sentences]

    if tokenize("sacremoses") != tokenize("data-prep"):
        sys.exit("The two tokenizers do not write the same: data-prep/moses.py is wrong.")
    return alternate({name: lambda name=name: tokenize(name) for name in both}, rounds)


def commands(sentences: list[str], lang: str, workers: int) -> dict[str, float]:
    """Seconds of data preparation's commands on all sentences."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        text, tokens, symbols = (folder / each for each in ("text", "tokens", "symbols"))
        text.write_text("".join(f"{sentence}\n" for sentence in sentences), encoding="utf-8")
        return {
            "tokenization": seconds(lambda: tokenize_text.tokenize_file(text, tokens, lang, workers)),
            "BPE": seconds(lambda: encode_bpe.encode_file(tokens, symbols, MODEL, workers)),
        }


def main(arguments: list[str] | None = None) -> None:
    """Prints both tables."""
    parser = flags(__doc__, rounds=5, sized=False)
    parser.add_argument("--sentences", type=int, default=1_000_000, help="that the commands go through")
    parser.add_argument("--compared", type=int, default=5_000, help="sentences that both tokenizers read in each round")
    parser.add_argument("--text", type=Path, help="UTF-8, may be .xz or .gz (default: the embedded corpus)")
    parser.add_argument("--lang", default="en", help="language code of the text")
    args = parse(parser, arguments)
    lines = [line.strip() for line in textio.read_lines(args.text or CORPUS)]
    time = compare(lines[: args.compared], args.lang, args.rounds)
    title = f"Moses tokenization in one process, {min(args.compared, len(lines)):,} sentences"
    compared = Table(title, ["", "sentences/s", "sacremoses' time / time"])
    for name, spread in time.items():
        rate = spread.rate(min(args.compared, len(lines)))
        compared.rows.append([name, rate, time["sacremoses"].over(spread).ratio()])
    done = commands(list(islice(cycle(lines), args.sentences)), args.lang, args.threads)
    title = f"Data preparation of {args.sentences:,} sentences, {args.threads} processes"
    prepared = Table(title, ["", "seconds", "sentences/s"])
    for name, taken in done.items():
        prepared.rows.append([name, f"{taken:.1f}", f"{args.sentences / taken:,.0f}"])
    report("text_preparation", args, [compared, prepared], seconds=time, commands=done, sentences=args.sentences)


if __name__ == "__main__":
    main()
