"""``lmfusion embed``: word vectors trained on a text."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmfusion.commands.parsers import add_command, check_seed
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.text.word_vectors import Training

_NUMBERS = {
    "size": (int, 100, "numbers of a vector"),
    "window": (int, 5, "most words to a neighbour on either side"),
    "epochs": (int, 5, "passes over the text"),
    "sample": (float, 1e-3, "words with a larger share of the text are often passed over; 0: none is"),
    "min_count": (int, 1, "least number of times that a word occurs"),
    "lr": (float, 0.025, "learning rate at first; it falls to 0.0001"),
    "seed": (int, 1, "of all random numbers"),
    "workers": (int, 1, "threads; with more than one the same seed gives other vectors each time"),
}
_NEGATIVE = 5


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "train word vectors (word2vec) on a text, for --src-lm and --tgt-lm"
    parser = add_command(
        commands,
        "embed",
        text,
        "lmfusion embed --corpus DATA/bpe/mono.train.en --out en.vec --neighbours library package",
        'fairseq-train DATA/bitext-all --user-dir "$(lmfusion user-dir)" --arch src_ft_tiny --src-lm en.vec ...',
        more=". It needs gensim: pip install 'lmfusion[static]'.",
    )
    corpus = "text encoded as the data are (BPE), one sentence a line; .gz and .xz too"
    parser.add_argument("--corpus", metavar="TEXT", action="extend", nargs="+", type=Path, required=True, help=corpus)
    parser.add_argument("--out", metavar="FILE", type=Path, required=True, help="file to write, in word2vec's format")
    parser.add_argument("--binary", action="store_true", help="write word2vec's binary format")
    mode = "skipgram: a word predicts its neighbours; cbow: they predict it (default: skipgram)"
    parser.add_argument("--mode", choices=("cbow", "skipgram"), default="skipgram", help=mode)
    loss = "ns: negative sampling; hs: hierarchical softmax (default: ns)"
    parser.add_argument("--loss", choices=("ns", "hs"), default="ns", help=loss)
    negative = f"ns: words drawn against each neighbour (default: {_NEGATIVE})"
    parser.add_argument("--negative", type=int, metavar="N", help=negative)
    for name, (kind, default, meaning) in _NUMBERS.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=kind, metavar="N", default=default, help=f"{meaning} (default: {default:g})")
    words = "words whose nearest neighbours are shown at the end (default: a few frequent ones)"
    parser.add_argument("--neighbours", metavar="WORD", action="extend", nargs="+", help=words)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion embed --corpus TEXT --out FILE``."""
    from lmfusion.text import textio
    from lmfusion.text.word_vectors import check_output, common_words, find_word, save, train

    check_seed(args.seed)
    textio.refuse_overwriting(args.out, args.corpus)
    settings = _settings(args)
    check_output(args.out)
    vectors = train(args.corpus, settings, args.neighbours or ())
    save(vectors, args.out, binary=args.binary)
    _show(vectors, [find_word(vectors, word) for word in args.neighbours or common_words(vectors)])
    print(f"wrote {args.out}: {len(vectors):,} vectors of {vectors.vector_size} numbers")


def _settings(args: argparse.Namespace) -> Training:
    from lmfusion.text.word_vectors import Training

    if args.loss == "hs" and args.negative is not None:
        raise InputError(f"--negative {args.negative} would be ignored with --loss hs: leave out one of the two.")
    negative = _NEGATIVE if args.negative is None else args.negative
    numbers = {name: getattr(args, name) for name in _NUMBERS}
    return Training(mode=args.mode, loss=args.loss, negative=negative, **numbers)


def _show(vectors: Any, words: list[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from lmfusion.text.printable import printable

    table = Table("word", "nearest, with the cosine of the angle between")
    for word in words:
        near = vectors.most_similar(word, topn=5)
        row = (word, "  ".join(f"{other} {cosine:.2f}" for other, cosine in near))
        table.add_row(*(Text(printable(cell)) for cell in row))
    if words:
        Console(highlight=False).print(table)
