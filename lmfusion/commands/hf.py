"""``lmfusion hf``: text for a language model of Hugging Face, in its own pieces."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lmfusion.errors import InputError

EXAMPLE = """example:
  lmfusion hf dictionary xlm-roberta-base --out dict.en.txt
  lmfusion hf encode xlm-roberta-base < train.en > train.pieces.en
  lmfusion hf decode xlm-roberta-base < output.pieces.en > output.en
  fairseq-preprocess --srcdict dict.en.txt --trainpref train.pieces …
  lmfusion hf save xlm-roberta-base --out xlm-r.pt
  lmfusion hf export runs/mine/causal.de/checkpoints/checkpoint_best.pt --out my-lm --licence mit"""


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write text in the pieces of a Hugging Face model, and the dictionary of them, for fairseq-preprocess"
    shape = {"epilog": EXAMPLE, "formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = commands.add_parser("hf", help=text, description=text, **shape)
    steps = parser.add_subparsers(title="steps", metavar="STEP", required=True)
    for name, run, about in (
        ("dictionary", run_dictionary, "write the dict.txt of a model's pieces"),
        ("encode", run_encode, "turn lines of raw text (standard input) into pieces (standard output)"),
        ("decode", run_decode, "turn lines of pieces (standard input) into text (standard output)"),
        ("save", run_save, "write a model with its tokenizer as one file, for --src-lm, --tgt-lm and load_lm"),
    ):
        step = steps.add_parser(name, help=about, description=about, **shape)
        step.add_argument("folder", metavar="FOLDER", help="of the model, as hf download or save_pretrained wrote it")
        if name in ("dictionary", "save"):
            step.add_argument("--out", metavar="FILE", type=Path, required=True, help="file to write")
        step.set_defaults(run=run)
    _add_export(steps, shape)


def _add_export(steps: Any, shape: dict[str, Any]) -> None:
    about = "write a causal language model of lmfusion as a folder that transformers loads, with tokenizer and card"
    step = steps.add_parser("export", help=about, description=about, **shape)
    step.add_argument("checkpoint", metavar="CKPT", help="checkpoint of uni_transformer_lm")
    step.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="folder to write")
    step.add_argument("--licence", metavar="NAME", help="for the model card, as Hugging Face names it: mit, cc-by-4.0")
    step.set_defaults(run=run_export)


def run_dictionary(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf dictionary FOLDER --out FILE``."""
    from lmfusion.text import textio
    from lmfusion.text.huggingface import PieceTokenizer

    tokenizer = PieceTokenizer.from_folder(args.folder)
    with textio.writing(args.out) as stream:
        stream.write(tokenizer.dictionary_text())
    print(f"wrote {args.out}, {len(tokenizer.symbols):,} symbols with fairseq's four")


def run_encode(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf encode FOLDER < text > pieces``."""
    from lmfusion.text.huggingface import PieceTokenizer

    tokenizer = PieceTokenizer.from_folder(args.folder)
    _write(" ".join(tokenizer.encode(line)) for line in _lines())


def run_decode(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf decode FOLDER < pieces > text``."""
    from lmfusion.text.huggingface import PieceTokenizer

    tokenizer = PieceTokenizer.from_folder(args.folder)
    _write(tokenizer.decode(line.split()) for line in _lines())


def run_save(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf save FOLDER --out FILE``."""
    import lmfusion
    from lmfusion.text.huggingface import check_folder

    lm = lmfusion.load_lm(check_folder(args.folder))
    from lmfusion.lm.huggingface_file import save

    save(lm, args.out)
    print(f"wrote {args.out}: {lm.title}")


def run_export(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf export CKPT --out FOLDER``."""
    import lmfusion

    lmfusion.install()
    from lmfusion.convert.causal_folder import to_folder

    to_folder(args.checkpoint, args.out, licence=args.licence)
    print(f"wrote {args.out}")


def _lines() -> Iterator[str]:
    """Yield the lines of standard input, UTF-8 whatever the terminal's encoding is; only a line feed ends a line."""
    for number, raw in enumerate(sys.stdin.buffer, start=1):
        try:
            yield raw.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError as error:
            raise InputError(f"standard input, line {number}: not UTF-8. Convert it by iconv -t UTF-8.") from error


def _write(lines: Iterator[str]) -> None:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    for line in lines:
        print(line)
