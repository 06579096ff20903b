"""``lmfusion run``: preparing data, training and packing, from one commented file."""

from __future__ import annotations

import argparse
import functools
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from lmfusion.commands.parsers import add_command
from lmfusion.commands.train import rows_of
from lmfusion.errors import InputError
from lmfusion.rows.scripts import REVERSE, is_back_translated

STEPS = ("data", "train", "pack", "report")
"""Sections of the file, in the order in which they run; each has the flags of the command of its name."""
EXAMPLE_FILE = Path(__file__).with_name("run_example.yaml")


class _StrictParser(argparse.ArgumentParser):
    """Raises what a command line of argparse's would end with, so that it is one line."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{self.prog}: {message}")


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "run data, train and pack as one file says"
    parser = add_command(
        commands,
        "run",
        text,
        "lmfusion run --example > mine.yaml",
        "lmfusion run mine.yaml",
        more=". Its sections are those commands, its keys their flags. Interrupted, the same command goes on.",
    )
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("file", nargs="?", type=Path, metavar="FILE", help="as --example prints it")
    what.add_argument("--example", action="store_true", help="print a commented file to begin with")
    parser.add_argument("--dry-run", action="store_true", help="print the commands, run none")
    parser.set_defaults(run=functools.partial(run, commands.choices))


def run(commands: Mapping[str, argparse.ArgumentParser], args: argparse.Namespace) -> None:
    """Run ``lmfusion run FILE``: read all of the file, then call one command after the other.

    Args:
        commands: the parsers of all commands, by name.
        args: the words after ``lmfusion run``.

    Raises:
        InputError: if the file is wrong, before anything runs; or a command's own.
    """
    from lmfusion.commands import run_file

    if args.example:
        print(EXAMPLE_FILE.read_text(encoding="utf-8"), end="")
        return
    lines = run_file.read(args.file, {name: commands[name] for name in STEPS if name in commands})
    steps = []
    for words in lines:
        parser = _StrictParser(prog=f"{args.file}: {words[0]}", parents=[commands[words[0]]], add_help=False)
        steps.append((words, parser.parse_args(words[1:])))
    for words, step in steps:
        _check_values(args.file, words[0], step)
    _check_folders(args.file, {words[0]: step for words, step in steps})
    for number, (words, step) in enumerate(steps, start=1):
        print(f"[{number}/{len(steps)}] lmfusion {shlex.join(words)}", flush=True)
        if not args.dry_run:
            step.run(step)


def _check_values(path: Path, name: str, step: argparse.Namespace) -> None:
    """Refuse what a section's command would refuse without the text and the models of the sections before it.

    Raises:
        InputError: naming the section.
    """
    try:
        getattr(step, "check", lambda step: None)(step)
    except InputError as error:
        raise InputError(f"{path}: {name}: {error}") from error


def _check_folders(path: Path, steps: Mapping[str, argparse.Namespace]) -> None:
    """Refuse sections that read something else than the section before them writes.

    Raises:
        InputError: naming both.
    """
    data, train, pack = (steps.get(name) for name in STEPS[:3])
    if data and train and Path(train.data) != Path(data.out):
        raise InputError(
            f"{path}: train reads data: {train.data}, but data writes out: {data.out}. Give the same folder."
        )
    if train and pack and Path(train.out) not in Path(pack.model).parents:
        raise InputError(f"{path}: pack reads model: {pack.model}, which is not in train's out: {train.out}.")
    if train and pack and not Path(pack.model).exists():  # a row of an earlier command is there already
        rows, row = rows_of(train), Path(pack.model).relative_to(train.out).parts[0]
        trained = [*rows, *(REVERSE for asked in rows if is_back_translated(asked))]
        if row not in trained:
            raise InputError(
                f"{path}: pack reads model: {pack.model}, which is none of train's rows: {', '.join(rows)}. Give "
                f"{Path(train.out) / rows[-1]}, or train {row} as well."
            )
