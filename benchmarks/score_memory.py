"""Memory and time of `lmfusion score bleu` for each line that it scores.

    lmfusion bench score_memory [--lines N] [--json FILE]

The text is the embedded corpus's English, repeated as often as it takes; hypotheses lack every eighth word or so. Each
row runs in a process of its own, and what the libraries take before is not counted.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
from itertools import cycle, islice
from pathlib import Path
from typing import Any

from memory import resident
from options import flags, parse
from results import Table, report
from timing import progress, seconds

from lmfusion import cli
from lmfusion.text import textio

ROOT = Path(__file__).resolve().parents[1]

CORPUS = ROOT / "data-prep" / "debian" / "en-de" / "mono.train.en.xz"
FILES = ("ref", "hyp", "baseline")
ROWS = {"score bleu": [], "score bleu --baseline": ["--baseline", "baseline"]}


def write_files(folder: Path, lines: int) -> None:
    """Write the reference and two systems' outputs, the same in every run."""
    generator = random.Random(1)
    text = [line.split() for line in textio.read_lines(CORPUS)]
    streams = [(folder / name).open("w", encoding="utf-8") for name in FILES]
    for words in islice(cycle(text), lines):
        for stream in streams:
            kept = words if stream is streams[0] else [word for word in words if generator.random() < 7 / 8]
            stream.write(" ".join(kept) + "\n")
    for stream in streams:
        stream.close()


def score(folder: Path, name: str) -> None:
    """Run one row, and print its peak memory in bytes and its seconds as JSON."""
    more = [str(folder / word) if word in FILES else word for word in ROWS[name]]
    command = ["score", "bleu", "--hyp", str(folder / "hyp"), "--ref", str(folder / "ref"), *more]
    before = resident()
    taken = seconds(lambda: cli.main(command))
    print(json.dumps({"peak": resident() - before, "seconds": taken}))


def measure(folder: Path, name: str) -> dict[str, Any]:
    """Run one row in a process of its own.

    Raises:
        SystemExit: it fails; it said why.
    """
    command = [sys.executable, __file__, "--one", name, "--folder", str(folder)]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"the process that measures {name} ended with status {done.returncode}; what it said is above.")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def main(arguments: list[str] | None = None) -> None:
    """Print the table."""
    parser = flags(__doc__, rounds=1, sized=False)
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--one", choices=ROWS, help="only run this row, on the files of --folder")
    parser.add_argument("--folder", type=Path)
    args = parse(parser, arguments)
    if args.one:
        score(args.folder, args.one)
        return
    with tempfile.TemporaryDirectory() as name:
        write_files(Path(name), args.lines)
        rows = list(ROWS)
        found = {rows[number]: measure(Path(name), rows[number]) for number in progress(range(len(rows)), "scoring")}
    table = Table(f"BLEU and chrF of {args.lines:,} lines", ["", "GB", "KB/line", "ms/line"])
    for row, taken in found.items():
        peak, time = taken["peak"], taken["seconds"]
        table.rows.append(
            [row, f"{peak / 1e9:.2f}", f"{peak / 1e3 / args.lines:.2f}", f"{1e3 * time / args.lines:.2f}"]
        )
    report("score_memory", args, [table], found=found)


if __name__ == "__main__":
    main()
