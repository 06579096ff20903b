"""``lmfusion predict``: label sentences and pairs by a model with heads."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import lmfusion
from lmfusion.checkpoint.finding import checkpoint_of, find_checkpoint
from lmfusion.commands.parsers import add_command, add_user_dir
from lmfusion.errors import InputError, why_no_file
from lmfusion.runs.run_folder import RUN_FILE

if TYPE_CHECKING:
    from lmfusion.consumers.heads import HeadSpec
    from lmfusion.inference.predicting import Prediction

_KINDS = (".pt", ".json", ".log", ".hyp")
"""Endings of a run's files, checkpoints first."""


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    parser = add_command(
        commands,
        "predict",
        "label sentences and pairs by a model with heads, with probabilities",
        "lmfusion predict runs/sst/checkpoint_best.pt --input new.txt > labels.tsv",
        "lmfusion predict runs/three --task quora --input quora/test.tsv",
        more=". Where the file has labels, what was measured of them is printed to standard error.",
    )
    parser.add_argument("model", metavar="MODEL", help="a run's folder or a checkpoint of --task lmfusion_sentences")
    parser.add_argument(
        "--input", metavar="FILE", required=True, help="plain lines (pairs: a tab between), or a tab-separated file"
    )
    parser.add_argument("--task", metavar="NAME", help="the head, where there are several")
    parser.add_argument("--output", metavar="FILE", help="default: standard output")
    parser.add_argument("--batch-size", type=int, default=64, metavar="N", help="examples at a time (default: 64)")
    parser.add_argument("--truncate-texts", action="store_true", help="cut what is longer than the model takes")
    add_user_dir(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion predict MODEL --input FILE``."""
    from lmfusion.text.labelled import read_texts
    from lmfusion.text.textio import refuse_overwriting, writing

    if args.batch_size < 1:
        raise InputError(f"--batch-size {args.batch_size}: give a number above 0.")
    path = Path(args.input)
    if not path.is_file():
        raise InputError(f"--input {path}: {why_no_file(path)}.")
    if args.output:
        refuse_overwriting(Path(args.output), [path])
        if Path(args.output).resolve() in {each.resolve() for each in files_of(Path(args.model))}:
            raise InputError(f"--output {args.output}: is a file of the model's run. Give another name.")
    for name in ("fairseq", "lmfusion"):
        logging.getLogger(name).setLevel(logging.WARNING)
    lmfusion.install()
    from lmfusion.inference.predicting import load_heads

    predictor = load_heads(args.model)
    spec = predictor.head(args.task)
    columns, examples = read_texts(path, 1 if spec.pair is None else 2)
    print(f"{path}: {columns or 'plain lines'}; {len(examples):,} examples for {spec.name}", file=sys.stderr)
    found = list(predictor.predict(spec, examples, path, size=args.batch_size, truncate=args.truncate_texts))
    if args.output:
        with writing(Path(args.output)) as stream:
            _write(stream, spec, found)
    else:
        _write(sys.stdout, spec, found)
    _measure(spec, found, [example.label for example in examples])


def files_of(model: Path) -> Iterator[Path]:
    """Yield the files of a model's run: checkpoints, records, logs and outputs, but no tables of predictions.

    Of a checkpoint that lies alone, in no run's folder, it and those beside it: what else is there may be anything.
    """
    checkpoint = find_checkpoint(model).absolute()
    yield checkpoint
    inner = checkpoint.parent
    for folder in {inner, inner.parent if inner.name == "checkpoints" else inner / "checkpoints"}:
        of_run = (folder / RUN_FILE).is_file() or (folder.is_dir() and checkpoint_of(folder) is not None)
        yield from (each for kind in (_KINDS if of_run else _KINDS[:1]) for each in folder.glob(f"*{kind}"))


def _measure(spec: HeadSpec, found: list[Prediction], labels: list[str | None]) -> None:
    """Print the measures of the predictions that have a label beside them, and how many these are if not all."""
    from lmfusion.training.sentence_measures import measured, unknown_labels

    pairs = [(each.label, label) for each, label in zip(found, labels) if label]
    if not pairs:
        return
    if len(pairs) < len(found):
        print(f"{len(pairs):,} of {len(found):,} examples have a label, and are measured", file=sys.stderr)
    if unknown := unknown_labels(spec, [label for _, label in pairs]):
        named = f"{', '.join(map(repr, unknown[:5]))}{' …' if len(unknown) > 5 else ''}"
        print(f"note: labels that {spec.name} does not have, counted as wrong: {named}", file=sys.stderr)
    for name, value in measured(spec, *zip(*pairs)).items():
        print(f"{name} {value:.4f}", file=sys.stderr)


def _write(stream: TextIO, spec: HeadSpec, found: list[Prediction]) -> None:
    """Write the names of the columns and a line for each prediction: label, then probabilities."""
    names = {"score": ["score"], "tags": ["tags", "probabilities"]}.get(spec.kind, ["label", *map(_cell, spec.classes)])
    print("\t".join(names), file=stream)
    for each in found:
        values = [f"{value:.4f}" for value in each.values]
        shown = {"score": [], "tags": [" ".join(values)]}.get(spec.kind, values)
        print("\t".join([_cell(each.label), *shown]), file=stream)


def _cell(label: str) -> str:
    """Return a label as it stands in one column of one line: tabs and line ends as spaces."""
    return " ".join(label.split())
