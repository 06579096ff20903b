"""``lmfusion recipes``: the scripts of the version that is installed."""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path
from typing import Any

from lmfusion.commands.parsers import add_command
from lmfusion.errors import InputError

_PACKAGE = Path(__file__).resolve().parents[1]
_FOLDERS = {"recipes": "recipes", "data-prep": "data_prep", "docs/own_parts": "own_parts"}
"""Name in a clone, and in the installed package."""
_KINDS = (".sh", ".py", ".smk", ".md", ".sbatch", ".tsv", ".flags")


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "write the scripts of this version into a folder: rows, the paper's experiments, data preparation, own parts"
    parser = add_command(
        commands,
        "recipes",
        text,
        "lmfusion recipes --out study && bash study/recipes/wmt18_ende/src_elmo.sh --dry-run",
    )
    parser.add_argument("--out", metavar="DIR", type=Path, required=True, help="new folder")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion recipes --out DIR``.

    Raises:
        InputError: the folder is there already, or the package was installed without its scripts.
    """
    from lmfusion.text.binarize import making_folder

    if args.out.exists():
        raise InputError(f"--out {args.out}: exists already; give a new folder, so that nothing of yours is replaced.")
    with making_folder(args.out) as work:  # an interrupted copy would be refused the next time
        count = _copy(work)
    print(f"wrote {count} files into {args.out}; they run with the installed lmfusion")


def _copy(out: Path) -> int:
    """Copy all scripts into a folder; return their number."""
    count = 0
    for name, installed in _FOLDERS.items():
        source = _source(name, installed)
        for path in sorted(source.rglob("*")):
            if path.suffix in _KINDS and "results" not in path.parts:
                target = out / name / path.relative_to(source)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target)
                count += 1
    return count


def _source(name: str, installed: str) -> Path:
    """Return where a folder of scripts lies: in the package, or beside it in a clone."""
    for folder in (_PACKAGE / installed, _PACKAGE.parent / name):  # beside an installed package lie strangers' folders
        if folder.is_dir():
            return folder
    raise InputError(f"{_PACKAGE} has no {name} in it or beside it: install lmfusion again.")
