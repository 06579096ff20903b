"""Tables of a page from the JSON that benchmarks wrote, so that no figure is typed.

    lmfusion bench render FOLDER [--into PAGE]

Without --into it prints all tables as Markdown. With it, every part of the page between `<!-- table FILE -->` and
`<!-- end -->` becomes the tables of that JSON, whose name is taken relative to the folder.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import sys
from pathlib import Path
from typing import Any

from results import Table

_PART = re.compile(r"(?s)<!-- table (\S+) -->(?P<old>.*?)(?P<end><!-- end -->|\Z)")


def markdown(path: Path) -> str:
    """A benchmark's tables, below its command and its machine."""
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    machine = ", ".join(f"{key} {value}" for key, value in found["machine"].items() if value is not None)
    lines = [f"`{shlex.join(['lmfusion', 'bench', *found['command']])}`\\", machine]
    for table in found["tables"]:
        lines += ["", f"{table['title']}:", "", Table(**table).markdown()]
    return "\n".join(lines)


def page(folder: Path) -> str:
    """All tables of a folder."""
    return "\n\n".join(f"## {path.stem}\n\n{markdown(path)}" for path in sorted(folder.glob("*.json"))) + "\n"


def fill(text: str, folder: Path) -> str:
    """A page with its tables renewed; one whose JSON is not there stays as it is.

    Raises:
        SystemExit: a table has no end.
    """

    def part(match: re.Match[str]) -> str:
        if not match["end"] or "<!-- table " in match["old"]:
            sys.exit(f"error: the table {match[1]} has no line `<!-- end -->` below it: add it to the page.")
        path = folder / match[1]
        return f"<!-- table {match[1]} -->\n{markdown(path)}\n<!-- end -->" if path.exists() else match[0]

    return _PART.sub(part, text)


def main(arguments: list[str] | None = None) -> None:
    """Prints or fills in."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--into", type=Path, metavar="PAGE")
    args = parser.parse_args(arguments)
    if not any(args.folder.rglob("*.json")):
        parser.error(f"{args.folder} has no JSON of a benchmark in it: give the folder of `lmfusion bench all --out`.")
    if args.into is None:
        sys.stdout.write(page(args.folder))
    else:
        args.into.write_text(fill(args.into.read_text(encoding="utf-8"), args.folder), encoding="utf-8")


if __name__ == "__main__":
    main()
