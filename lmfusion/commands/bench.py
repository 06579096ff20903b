"""``lmfusion bench``: the benchmarks of the repository."""

from __future__ import annotations

import argparse
import ast
import subprocess
import sys
from pathlib import Path
from typing import Any

from lmfusion.commands.parsers import add_command
from lmfusion.errors import InputError

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
_MAIN = 'if __name__ == "__main__":'


def add(commands: Any) -> None:
    """Add the command and its flags to the subcommands of ``lmfusion``."""
    text = "measure speed: both sides of every ratio in one run"
    without = "; without a name, lists the benchmarks; all runs all that suit the machine"
    parser = add_command(commands, "bench", text, "lmfusion bench", "lmfusion bench all --out DIR", more=without)
    parser.add_argument("name", nargs="?", help="of a benchmark")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its own options; --help shows them")
    parser.set_defaults(run=run)


def benchmarks() -> dict[str, Path]:
    """Return the paths of the repository's benchmarks by name.

    Raises:
        InputError: if lmfusion was installed without its repository.
    """
    if not FOLDER.is_dir():
        raise InputError("the benchmarks are not installed with the package: run this in a clone of the repository.")
    scripts = {path.stem: path for path in sorted(FOLDER.glob("*.py"))}
    return {name: path for name, path in scripts.items() if _MAIN in path.read_text(encoding="utf-8")}


def run(args: argparse.Namespace) -> None:
    """Run ``lmfusion bench [NAME [OPTIONS]]``: list the benchmarks, or run one.

    Raises:
        InputError: if there is no such benchmark, or it fails.
    """
    found = benchmarks()
    if args.name is None:
        for name, path in found.items():
            title = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
            print(f"{name:<16} {title.splitlines()[0]}")
        return
    if args.name not in found:
        raise InputError(f"{args.name}: there is no such benchmark; there are {', '.join(found)}.")
    done = subprocess.run([sys.executable, str(found[args.name]), *args.arguments], check=False)
    if done.returncode:
        raise InputError(f"the benchmark {args.name} ended with status {done.returncode}; what it said is above.")
