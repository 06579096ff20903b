"""What the help of every command has in common: what it does in one line, its flags, and at its end how to call it."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any

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
