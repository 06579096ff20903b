"""``lmfusion user-dir``: the folder of the plugin."""

from __future__ import annotations

import argparse
from typing import Any

from lmfusion.commands.parsers import add_command


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "print the folder for fairseq's --user-dir"
    example = 'fairseq-train data/bin --user-dir "$(lmfusion user-dir)" --arch src_elmo_tiny --src-lm cloze.pt'
    add_command(commands, "user-dir", text, "lmfusion user-dir", example).set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion user-dir``: print the folder."""
    import lmfusion

    print(lmfusion.USER_DIR)
