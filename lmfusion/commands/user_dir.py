"""``lmfusion user-dir``: where the plugin lies."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """The command's flags."""
    text = 'print the folder for fairseq\'s --user-dir: fairseq-train --user-dir "$(lmfusion user-dir)" …'
    commands.add_parser("user-dir", help=text, description=text).set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """``lmfusion user-dir``"""
    import lmfusion

    print(lmfusion.USER_DIR)
