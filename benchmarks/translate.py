"""Translation of plain text: `lmfusion translate` beside `fairseq-interactive`, whole commands in turn.

    lmfusion bench translate [--model FILE] [--text FILE] [--sentences N] [--batch-size N …] [--beam N] [--json FILE]

Both read the same file and take BPE and tokenizer from the same model; fairseq-interactive has a buffer of 16 batches,
the number of lines that `lmfusion translate` sorts by length together, for with its own buffer of one line it is many
times slower. Several --batch-size make several tables. A command's seconds include its start, which is measured on one
sentence, and the rate is that of the others. How many translations are the same is told, too.
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

import torch
from options import flags, parse
from results import Table, report
from timing import Spread, alternate

import lmfusion
from lmfusion.checkpoint.reading import read_checkpoint
from lmfusion.text import textio
from lmfusion.text.kit import TextKit, from_state
from lmfusion.translate_lines import WINDOW

ROOT = Path(__file__).resolve().parents[1]
MODEL = ROOT / "pretrained" / "en-de.lmf"
TEXT = ROOT / "data-prep" / "debian" / "en-de" / "test.en.xz"
OURS, FAIRSEQS = "lmfusion translate", "fairseq-interactive"


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
        if name == OURS:
            size = ["--batch-size", str(self.batch_size)]
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


def measure(setting: Setting, sentences: list[str]) -> dict[str, Any]:
    """Seconds of both commands on all sentences and on the first, and how many translations are the same."""
    both, one = setting.folder / "all.txt", setting.folder / "one.txt"
    for path, lines in ((both, sentences), (one, sentences[:1])):
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    answers: dict[str, list[str]] = {}

    def translate(name: str) -> None:
        answers[name] = setting.run(name, both)

    starts = alternate({name: lambda n=name: setting.run(n, one) for name in (OURS, FAIRSEQS)}, setting.args.rounds)
    time = alternate({name: lambda n=name: translate(n) for name in (OURS, FAIRSEQS)}, setting.args.rounds)
    same = sum(ours == theirs for ours, theirs in zip(answers[OURS], answers[FAIRSEQS], strict=True))
    return {"seconds": time, "start": starts, "same": same, "sentences": len(sentences)}


def table(found: dict[str, Any], setting: Setting) -> Table:
    """The table of a batch size."""
    count, beam = found["sentences"], setting.args.beam
    title = (
        f"{setting.model.name}, {count} sentences, beam {beam}, {setting.batch_size} a batch; the same translations: "
        f"{found['same']}"
    )
    columns = ["", "seconds", "of them start", "sentences/s after it", "time / fairseq-interactive"]
    shown = Table(title, columns)
    for name, spread in found["seconds"].items():
        start: Spread = found["start"][name]
        rate = (count - 1) / max(spread.median - start.median, 1e-9)
        ratio = spread.over(found["seconds"][FAIRSEQS]).ratio()
        shown.rows.append([name, f"{spread.median:.1f}", f"{start.median:.1f}", f"{rate:,.1f}", ratio])
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
    parser.add_argument("--sentences", type=int, default=500, help="of the text, from its beginning (500)")
    parser.add_argument("--batch-size", type=int, nargs="+", default=[64], help="sentences a batch, for both (64)")
    parser.add_argument("--beam", type=int, default=5)
    args = parse(parser, arguments)
    kit = kit_of(args.model)
    sentences = list(islice((line for line in textio.read_lines(args.text) if line.strip()), args.sentences))
    figures, tables = {}, []
    with tempfile.TemporaryDirectory() as name:
        kit.unpack(Path(name))
        for size in args.batch_size:
            setting = Setting(args.model.resolve(), kit.languages, Path(name), size, args)
            figures[size] = measure(setting, sentences)
            tables.append(table(figures[size], setting))
    report("translate", args, tables, batches=figures)


if __name__ == "__main__":
    main()
