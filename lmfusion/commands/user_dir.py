"""``lmfusion user-dir``: the folder of the plugin."""

from __future__ import annotations

import argparse
from typing import Any


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = 'print the folder for fairseq\'s --user-dir: fairseq-train --user-dir "$(lmfusion user-dir)" …'
    commands.add_parser("user-dir", help=text, description=text).set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion user-dir``: print the folder."""
    import lmfusion

    print(lmfusion.USER_DIR)
