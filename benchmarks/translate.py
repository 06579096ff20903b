"""Translation of plain text: `lmfusion translate`, and with --int8, beside `fairseq-interactive`, commands in turn.

    lmfusion bench translate [--model FILE] [--text FILE --reference FILE] [--sentences N] [--batch-size N …] [--beam N]
                             [--json FILE]

Both read the same file and take BPE and tokenizer from the same model; fairseq-interactive has a buffer of 16 batches,
the number of lines that `lmfusion translate` sorts by length together, for with its own buffer of one line it is many
times slower. Several --batch-size make several tables. A command's seconds include its start, which is measured on one
sentence, and the rate is that of the others. How many translations are fairseq-interactive's is told, too, and BLEU.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import sacrebleu
import torch
from options import flags, parse
from results import Table, report
from timing import Spread, alternate

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.inference.translate_lines import WINDOW
from lmfusion.text import textio
from lmfusion.text.kit import TextKit, from_state

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "pretrained" / "en-de.lmf"
TEXT = ROOT / "data-prep" / "debian" / "en-de" / "test.en.xz"
REFERENCE = TEXT.with_name("test.de.xz")
OURS, INT8, FAIRSEQS = "lmfusion translate", "lmfusion translate --int8", "fairseq-interactive"
NAMES = (OURS, FAIRSEQS) if torch.cuda.is_available() else (OURS, INT8, FAIRSEQS)


@dataclass(frozen=True)
class Setting:
    """What both commands are given."""

    model: Path
    languages: tuple[str, ...]
    folder: Path
    batch_size: int
    args: argparse.Namespace

    def words(self, name: str, text: Path) -> list[str]:
        """The command line of one of them."""
        beam = ["--beam", str(self.args.beam)]
        if name != FAIRSEQS:
            size = ["--batch-size", str(self.batch_size), *(["--int8"] if name == INT8 else [])]
            return [sys.executable, "-m", "lmfusion.cli", "translate", str(self.model), str(text), *beam, *size]
        sizes = ["--buffer-size", str(WINDOW * self.batch_size), "--batch-size", str(self.batch_size)]
        half = ["--fp16"] if torch.cuda.is_available() else []
        sides = ["-s", self.languages[0], "-t", self.languages[1], "--user-dir", lmfusion.USER_DIR]
        command = [sys.executable, "-m", "fairseq_cli.interactive", str(self.folder), "--path", str(self.model)]
        return [*command, "--input", str(text), *sides, *beam, *sizes, *half]

    def run(self, name: str, text: Path) -> list[str]:
        """Translate a file; returns the translations in order.

        Raises:
            SystemExit: the command failed.
        """
        environment = {**os.environ, "OMP_NUM_THREADS": str(self.args.threads), "PYTHONPATH": str(ROOT)}
        done = subprocess.run(self.words(name, text), capture_output=True, text=True, env=environment, check=False)
        if done.returncode:
            sys.exit(f"{name} failed: {done.stderr.strip()[-2000:]}")
        lines = done.stdout.split("\n")
        if name == FAIRSEQS:
            found = [line.split("\t") for line in lines if line.startswith("D-")]
            lines = [cells[2] for cells in sorted(found, key=lambda cells: int(cells[0][2:]))] + [""]
        return [" ".join(line.split()) for line in lines[:-1]]


def measure(setting: Setting, sentences: list[str], references: list[str]) -> dict[str, Any]:
    """Seconds of all commands on all sentences and on the first, how many translations are fairseq's, and BLEU."""
    every, one = setting.folder / "all.txt", setting.folder / "one.txt"
    for path, lines in ((every, sentences), (one, sentences[:1])):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    answers: dict[str, list[str]] = {}

    def translate(name: str) -> None:
        answers[name] = setting.run(name, every)

    starts = alternate({name: lambda n=name: setting.run(n, one) for name in NAMES}, setting.args.rounds)
    time = alternate({name: lambda n=name: translate(n) for name in NAMES}, setting.args.rounds)
    same = {name: sum(map(str.__eq__, answers[name], answers[FAIRSEQS])) for name in NAMES}
    bleu = {name: sacrebleu.corpus_bleu(answers[name], [references]).score if references else None for name in NAMES}
    return {"seconds": time, "start": starts, "same": same, "bleu": bleu, "sentences": len(sentences)}


def table(found: dict[str, Any], setting: Setting) -> Table:
    """The table of a batch size."""
    count, beam = found["sentences"], setting.args.beam
    title = f"{setting.model.name}, {count} sentences, beam {beam}, {setting.batch_size} a batch"
    columns = ["", "seconds", "of them start", "sentences/s after it", "time / fairseq-interactive"]
    shown = Table(title, [*columns, "same as fairseq-interactive", "BLEU"])
    for name, spread in found["seconds"].items():
        start: Spread = found["start"][name]
        rate = (count - 1) / max(spread.median - start.median, 1e-9)
        bleu = found["bleu"][name]
        cells = [f"{spread.median:.1f}", f"{start.median:.1f}", f"{rate:,.1f}"]
        cells += [spread.over(found["seconds"][FAIRSEQS]).ratio(), f"{found['same'][name]} of {count}"]
        shown.rows.append([name, *cells, "" if bleu is None else f"{bleu:.2f}"])
    return shown


def kit_of(model: Path) -> TextKit:
    """What a model holds to read plain text.

    Raises:
        SystemExit: it holds nothing.
    """
    lmfusion.install()
    kit = from_state(model, read_checkpoint(model))
    if kit is None or not (kit.bpe and kit.dictionaries):
        sys.exit(f"{model} holds no BPE and dictionaries: give a model that `lmfusion pack` wrote.")
    return kit


def main(arguments: list[str] | None = None) -> None:
    """Prints a table for each batch size."""
    parser = flags(__doc__, rounds=3, sized=False)
    parser.add_argument("--model", type=Path, default=MODEL, help="a packed model (default: the one that is shipped)")
    parser.add_argument("--text", type=Path, default=TEXT, help="of its source language (default: the test set)")
    parser.add_argument("--reference", type=Path, help="its translations, for BLEU (default: the test set's)")
    parser.add_argument("--sentences", type=int, default=500, help="of the text, from its beginning (500)")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[64], help="sentences a batch, for both (64)")
    parser.add_argument("--beam", type=int, default=5)
    args = parse(parser, arguments)
    kit = kit_of(args.model)
    sentences = list(islice(textio.read_lines(args.text), args.sentences))
    reference = args.reference or (REFERENCE if args.text == TEXT else None)
    references = list(islice(textio.read_lines(reference), len(sentences))) if reference else []
    if not all(map(str.strip, sentences)) or (reference and len(references) != len(sentences)):
        sys.exit(f"{args.text}: give lines that hold text, and as many of --reference.")
    figures, tables = {}, []
    with tempfile.TemporaryDirectory() as name:
        kit.unpack(Path(name))
        for size in args.batch_size:
            setting = Setting(args.model.resolve(), kit.languages, Path(name), size, args)
            figures[size] = measure(setting, sentences, references)
            tables.append(table(figures[size], setting))
    report("translate", args, tables, batches=figures)


if __name__ == "__main__":
    main()
