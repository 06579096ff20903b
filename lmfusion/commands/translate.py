"""``lmfusion translate``: plain text in, translations (or summaries) out."""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import lmfusion
from lmfusion.commands.parsers import add_command, add_user_dir, allow_options_between, check_seed
from lmfusion.errors import InputError

if TYPE_CHECKING:
    from lmfusion.inference.translate_lines import Hypothesis

_SETTINGS = {
    "lenpen": (float, "above 1 prefers longer translations, below 1 shorter ones (default: 1)"),
    "max_len_a": (float, "most symbols of a translation: A times the source's …"),
    "max_len_b": (int, "… plus B (default: 0 and 200)"),
    "min_len": (int, "least symbols of a translation (default: 1)"),
    "unkpen": (float, "taken off the score of <unk> (default: 0, as any symbol; 100: never written)"),
    "no_repeat_ngram_size": (int, "no N symbols twice in a translation, for summaries"),
}


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "translate a file, a stream, or what is typed"
    parser = add_command(
        commands,
        "translate",
        text,
        "lmfusion translate runs/mine/src_elmo_shdemb new.en > new.fr",
        "lmfusion translate model.lmf",
        more=". BPE, tokenizer and languages come from the model.",
    )
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="a run's folder, a checkpoint, a packed model (.lmf), or a folder of `lmfusion export --ctranslate2`",
    )
    parser.add_argument(
        "file", metavar="FILE", nargs="?", help="one sentence a line, .gz or .xz too; default (and -): standard input"
    )
    parser.add_argument("--beam", type=int, default=5, help="hypotheses kept at every step (default: 5)")
    parser.add_argument("--nbest", type=int, default=1, metavar="N", help="print N lines for each: number, score, text")
    parser.add_argument("--scores", action="store_true", help="print the score and a tab before each translation")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="sentences at a time (default: 64)")
    for name, (kind, meaning) in _SETTINGS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, metavar="N", help=meaning)
    parser.add_argument("--sampling", action="store_true", help="draw translations instead of searching for the best")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of --sampling (default: 1)")
    parser.add_argument(
        "--int8", action="store_true", help="multiply in 8-bit integers, on a CPU: faster, nearly the same"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), help="default: cuda where there is one")
    parser.add_argument("--data", metavar="DIR", help="dictionaries, of a checkpoint that does not hold them")
    parser.add_argument("--spm", metavar="FILE", help="the sentencepiece model, of a checkpoint that does not hold it")
    add_user_dir(parser)
    parser.set_defaults(run=run)
    allow_options_between(parser)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion translate MODEL [FILE]``."""
    check_seed(args.seed)
    file = None if args.file == "-" else args.file
    dialogue = file is None and sys.stdin.isatty()
    lines, total = (_typed(), None) if dialogue else _lines(file)
    for name in ("fairseq", "lmfusion.fusion", "lmfusion.kernels", "sacremoses"):
        logging.getLogger(name).setLevel(logging.WARNING)
    lmfusion.install()
    from lmfusion.inference.translate_lines import Search, translate_lines
    from lmfusion.text.progress import progress

    settings = {name: getattr(args, name) for name in _SETTINGS if getattr(args, name) is not None}
    if args.sampling:
        import torch

        torch.manual_seed(args.seed)
        settings["sampling"] = True
    search = Search(args.beam, args.nbest, args.batch_size, settings)
    if (Path(args.model) / "model.bin").is_file():
        from lmfusion.inference.ctranslate import CTranslator

        if ignored := [flag for flag, value in (("--data", args.data), ("--spm", args.spm)) if value]:
            raise InputError(f"{' and '.join(ignored)} would be ignored: {args.model} holds its text files. Leave out.")

        model: Any = CTranslator(args.model, int8=args.int8, device=args.device or "cpu")
        translate = model.translate_lines
    else:
        model = _load(args)
        translate = partial(translate_lines, model)
    bar = None if total is None or sys.stdout.isatty() else progress(total=total, label=file or "")
    found = translate(lines, search, ahead=not dialogue, done=None if bar is None else bar.update)
    for number, hypotheses in enumerate(found, start=1):
        for hypothesis in hypotheses:
            print(_printed(number, hypothesis, args), flush=sys.stdout.isatty() or not file)


def _load(args: argparse.Namespace) -> Any:
    import torch

    if args.int8 and args.device == "cuda":
        raise InputError("--int8 is for CPUs: leave out it or --device cuda.")
    given = {"data": args.data, "sentencepiece_model": args.spm}
    model = lmfusion.load_model(args.model, **{name: value for name, value in given.items() if value})
    if args.device == "cuda" and not torch.cuda.is_available():
        raise InputError("--device cuda: PyTorch finds no GPU here; leave the flag out for the CPU.")
    if args.int8:
        from lmfusion.inference.int8 import quantize

        quantize(model.float())
        return model
    if args.device != "cpu" and torch.cuda.is_available():
        return model.cuda().half()
    return model.float()


def _printed(number: int, hypothesis: Hypothesis, args: argparse.Namespace) -> str:
    if args.nbest > 1:
        return f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}"
    return f"{hypothesis.score:.4f}\t{hypothesis.text}" if args.scores else hypothesis.text


def _lines(file: str | None) -> tuple[Iterable[str], int | None]:
    """Return the lines to translate and their number, of a file; one that is not there is refused at once."""
    if file is None:
        return _streamed(sys.stdin.fileno(), "standard input"), None
    from lmfusion.text import opening, textio

    path = Path(file)
    if path.is_dir():
        raise InputError(f"{file} is a folder: give a file of text, or standard input.")
    if path.exists() and not path.is_file():  # a pipe, whose lines cannot be counted first
        return _streamed(os.open(path, os.O_RDONLY), file), None
    total = textio.count_lines(path)
    with textio.open_binary(path) as stream:
        head = stream.read(opening.BLOCK)
    opening.check_kind(path, head)
    opening.check_head(path, head)  # else lines of old Macs are one line, which is cut
    return textio.read_lines(path), total


def _typed() -> Iterator[str]:
    """Yield what is typed, with arrow keys and history; Ctrl-D ends."""
    import readline  # noqa: F401  # input() uses it from now on

    while True:
        try:
            yield input("> ")
        except EOFError:
            print()
            return


def _streamed(descriptor: int, name: str) -> Iterator[str]:
    # Not sys.stdin, whose lock Python wants at its end, when a thread still waits for a line.
    with open(descriptor, "rb", closefd=False) as stream:
        for number, line in enumerate(stream, start=1):
            if number == 1:
                _check_start(name, line)
            try:
                text = line.decode("utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise InputError(f"{name}, line {number}: not UTF-8 ({error.reason}). Convert it first.") from error
            yield text.removeprefix("\ufeff") if number == 1 else text


def _check_start(name: str, line: bytes) -> None:
    from lmfusion.text.opening import STREAMED

    for mark, program in STREAMED.items():
        if line.startswith(mark):
            raise InputError(f"{name} is compressed: decompress it before ({program} -dc … | lmfusion translate …).")
