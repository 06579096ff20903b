"""What the help of every command has in common: what it does in one line, its flags, and at its end how to call it."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from pathlib import Path
from typing import Any

import lmfusion
from lmfusion.errors import InputError

SEEDS = 2**32
"""Seeds that numpy, PyTorch and sentencepiece all take are below."""


def add_command(commands: Any, name: str, text: str, *examples: str, more: str = "") -> argparse.ArgumentParser:
    """Add a command to a parser's subcommands and return its own parser.

    Args:
        commands: what ``add_subparsers`` returned.
        name: of the command.
        text: what it does, in a line.
        examples: whole command lines, which close its help. They have to parse; a test sees to that.
        more: what its own help says after ``text``.
    """
    lines = "".join(f"\n  {example}" for example in examples)
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=text,
        description=textwrap.fill(text + more, shutil.get_terminal_size().columns - 2),
        epilog=f"example{'s' if len(examples) > 1 else ''}:{lines}",
        formatter_class=argparse.RawDescriptionHelpFormatter,  # no line of an example is broken
    )
    return parser


def add_user_dir(parser: argparse.ArgumentParser) -> None:
    """Add --user-dir to a command that builds models; its folder is imported before the command runs."""
    text = "folder of your own families and integrations that the model uses, as for fairseq-train (its code is run)"
    parser.add_argument("--user-dir", metavar="DIR", help=text)


def use_own_parts(folder: str) -> None:
    """Import a folder of own families and integrations as fairseq does, then install the plugin.

    Raises:
        InputError: there is no such folder, or its name is that of another module.
    """
    path = Path(folder).resolve()
    if not path.is_dir():
        raise InputError(f"--user-dir {folder}: there is no such folder.")
    known = sys.modules.get(path.name)
    if known is not None and str(path) not in getattr(known, "__path__", []):
        raise InputError(f"--user-dir {folder}: {path.name} is the name of another module. Rename the folder.")
    from fairseq.utils import import_user_module

    import_user_module(argparse.Namespace(user_dir=str(path)))
    lmfusion.install()


def check_seed(seed: int) -> None:
    """Refuse a seed that one of the libraries would refuse later on.

    Raises:
        InputError: it is negative or too large.
    """
    if not 0 <= seed < SEEDS:
        raise InputError(f"--seed {seed}: give a number from 0 to {SEEDS - 1}.")


def allow_options_between(parser: argparse.ArgumentParser) -> None:
    """Let options stand between a parser's words, as in ``translate MODEL --beam 5 FILE``.

    argparse of Python 3.11 takes an optional word for left out once it has seen those before the option.
    """
    plain = parser.parse_known_args

    def parse(*args: Any) -> Any:
        parser.parse_known_args = plain  # type: ignore[method-assign]
        try:
            return parser.parse_known_intermixed_args(*args)
        finally:
            parser.parse_known_args = parse  # type: ignore[method-assign, assignment]

    parser.parse_known_args = parse  # type: ignore[method-assign, assignment]
