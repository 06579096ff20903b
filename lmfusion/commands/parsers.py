"""What the help of every command has in common: what it does in one line, its flags, and at its end how to call it."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from typing import Any


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
