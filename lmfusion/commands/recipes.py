"""``lmfusion recipes``: the scripts that repeat the paper's experiments, of the installed version."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

import lmfusion
from lmfusion.errors import InputError

FOLDERS = ("recipes", "data-prep")
NOT_COPIED = ("__pycache__", "*.pyc", "results", "en-de")
"""Of a clone: what the wheel leaves out as well, see setup.py."""
EXAMPLE = """
example:
  lmfusion recipes --out scripts
  cd scripts && bash recipes/wmt18_ende/src_elmo.sh --dry-run
"""


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write the recipes of this version: the scripts that prepare data and train the paper's models"
    style = argparse.RawDescriptionHelpFormatter
    parser = commands.add_parser("recipes", help=text, description=text, epilog=EXAMPLE, formatter_class=style)
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder to write to")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion recipes --out DIR``.

    Raises:
        InputError: if there are recipes already, or the package was installed without them.
    """
    origin = origin_of_scripts()
    for folder in FOLDERS:
        if (args.out / folder).exists():
            raise InputError(f"{args.out / folder} exists, and may hold changes of yours: choose another --out.")
    for folder in FOLDERS:
        shutil.copytree(origin / folder, args.out / folder, ignore=shutil.ignore_patterns(*NOT_COPIED))
    print(f"wrote {' and '.join(str(args.out / folder) for folder in FOLDERS)}, of lmfusion {lmfusion.__version__}")
    print(f"Start them in {args.out}; recipes/*/README.md say what each trains, data-prep/README.md where data come from.")
    print("The small experiments on Debian's texts need two folders of the repository: name them by CORPUS, PRETRAINED.")


def origin_of_scripts() -> Path:
    """Return the folder with ``recipes`` and ``data-prep``: the installed package, or the clone that it lies in.

    Raises:
        InputError: if neither has them.
    """
    package = Path(lmfusion.USER_DIR)
    for folder in (package, package.parent):
        if all((folder / name).is_dir() for name in FOLDERS):
            return folder
    raise InputError(f"{package} was installed without its recipes: install lmfusion again.")
