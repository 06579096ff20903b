"""``lmfusion hf``: text for a language model of Hugging Face, in its own pieces."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import lmfusion
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.lm.interface import PretrainedLM

EXAMPLE = """example:
  lmfusion hf dictionary xlm-roberta-base --out dict.en.txt
  lmfusion hf encode xlm-roberta-base < train.en > train.pieces.en
  lmfusion hf decode xlm-roberta-base < output.pieces.en > output.en
  fairseq-preprocess --srcdict dict.en.txt --trainpref train.pieces …
  lmfusion hf import bert-base-cased --out bert.pt --dict dict.en.txt
  lmfusion hf export runs/mine/bert.en/checkpoints/checkpoint_best.pt --out my-bert
  lmfusion hf save xlm-roberta-base --out xlm-r.pt
  lmfusion hf export runs/mine/causal.de/checkpoints/checkpoint_best.pt --out my-lm --licence mit"""


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "text in the pieces of a Hugging Face model, and their dictionary; BERT as a checkpoint and back"
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
    _add_import(steps, shape)
    _add_export(steps, shape)


def _add_import(steps: Any, shape: dict[str, Any]) -> None:
    about = "write a folder of BertForPreTraining as a checkpoint of the family bert, to be trained further or used"
    step = steps.add_parser("import", help=about, description=about, **shape)
    step.add_argument("folder", metavar="FOLDER", help="of the model, as hf download or save_pretrained wrote it")
    step.add_argument("--out", metavar="FILE", type=Path, required=True, help="checkpoint to write")
    step.add_argument("--dict", metavar="FILE", type=Path, help="dict.txt to write, for fairseq-preprocess")
    step.set_defaults(run=run_import)


def _add_export(steps: Any, shape: dict[str, Any]) -> None:
    about = "write a causal LM or a BERT of lmfusion as a folder that transformers loads, with its tokenizer"
    step = steps.add_parser("export", help=about, description=about, **shape)
    step.add_argument("checkpoint", metavar="CKPT", help="checkpoint of uni_transformer_lm or bert_lm")
    step.add_argument("--out", metavar="FOLDER", type=Path, required=True, help="folder to write")
    step.add_argument("--licence", metavar="NAME", help="of a causal LM, for its model card: mit, cc-by-4.0")
    step.set_defaults(run=run_export)


def run_dictionary(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf dictionary FOLDER --out FILE``."""
    from lmfusion.text import textio
    from lmfusion.text.huggingface import PieceTokenizer

    _refuse_inside(args.folder, args.out)
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


def run_import(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf import FOLDER --out FILE [--dict FILE]``."""
    lmfusion.install()
    from lmfusion.convert.bert import from_folder
    from lmfusion.text import textio

    if args.dict is not None and args.dict.resolve() == args.out.resolve():
        raise InputError(f"--out and --dict are both {args.out}: give two names.")
    for path in filter(None, (args.out, args.dict)):
        _refuse_inside(args.folder, path)
    converted = from_folder(args.folder)
    converted.write(args.out)
    count = sum(parameter.numel() for parameter in converted.model.parameters())
    print(f"wrote {args.out}: bert_lm, {count:,} parameters")
    if args.dict is not None:
        symbols: list[str] = cast("PretrainedLM", converted.model).symbols
        with textio.writing(args.dict) as stream:
            stream.write("".join(f"{symbol} 1\n" for symbol in symbols[4:]))
        print(f"wrote {args.dict}, {len(symbols):,} symbols with fairseq's four and <mask>")


def run_save(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf save FOLDER --out FILE``."""
    import lmfusion
    from lmfusion.text.huggingface import check_folder

    _refuse_inside(args.folder, args.out)
    lm = lmfusion.load_lm(check_folder(args.folder))
    from lmfusion.lm.huggingface_file import save

    save(lm, args.out)
    print(f"wrote {args.out}: {lm.title}")


def run_export(args: argparse.Namespace) -> None:
    """Run ``lmfusion hf export CKPT --out FOLDER``."""
    lmfusion.install()
    from lmfusion.convert.folders import to_folder

    to_folder(args.checkpoint, args.out, licence=args.licence)
    print(f"wrote {args.out}")


def _refuse_inside(folder: str, out: Path) -> None:
    """Refuse to write over a file of the model's folder."""
    if out.exists() and out.resolve().parent == Path(folder).resolve():
        raise InputError(f"--out {out} is a file of {folder}, which would be lost: give another name.")


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
