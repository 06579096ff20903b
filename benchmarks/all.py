"""All benchmarks on one machine, into one folder: figures as JSON, drawings as SVG, tables as Markdown.

    lmfusion bench all --out DIR [--rehearse] [--threads N] [--only NAME…]

Chooses what suits the machine, a GPU or a CPU, tells how far it is and how long it may take. Started again with the
same folder it goes on where it was stopped. --rehearse runs the same on tiny models in a minute or two; its figures
mean nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

import torch
from plan import CPU, GPU, REHEARSAL, Run
from render import page


def command(run: Run, out: Path, threads: int | None) -> list[str]:
    """What is started."""
    options = ["--json", str(out / f"{run.name}.json")]
    if run.benchmark == "growth":
        options += ["--figures", str(out)]
    if threads is not None:
        options += ["--threads", str(threads)]
    return [sys.executable, str(Path(__file__).with_name(f"{run.benchmark}.py")), *run.options, *options]


def is_done(run: Run, out: Path) -> bool:
    """Whether its figures are there; those of other options (a rehearsal's) end the command."""
    path = out / f"{run.name}.json"
    if not path.exists():
        return False
    measured = json.loads(path.read_text(encoding="utf-8"))["command"]
    options = measured[: measured.index("--threads")] if "--threads" in measured else measured
    if options != [run.benchmark, *run.options]:
        sys.exit(f"{path} holds the figures of another run ({' '.join(measured)}): choose another --out, or delete it.")
    return True


def announce(number: int, runs: list[Run], taken: float, planned: float) -> None:
    """How far we are, and the time left, judged by how long the past ones took against the plan."""
    left = sum(run.minutes for run in runs[number:]) * (taken / planned if planned else 1.0)
    run = runs[number]
    print(f"[{number + 1}/{len(runs)}] {run.name}: about {left:.0f} min left in all", file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> None:
    """Runs all, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder for everything; made if it is not there")
    parser.add_argument("--rehearse", action="store_true", help="on tiny models")
    parser.add_argument("--threads", type=int, help="on a CPU (default: all)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="some of them")
    args = parser.parse_args(arguments)
    plan = REHEARSAL if args.rehearse else GPU if torch.cuda.is_available() else CPU
    unknown = set(args.only or ()) - {run.name for run in plan}
    if unknown:
        parser.error(f"--only {' '.join(unknown)}: there are {', '.join(run.name for run in plan)}.")
    args.out.mkdir(parents=True, exist_ok=True)
    wanted = [run for run in plan if not args.only or run.name in args.only]
    runs = [run for run in wanted if not is_done(run, args.out)]
    if len(runs) < len(wanted):
        print(f"{len(wanted) - len(runs)} are in {args.out} already: delete their JSON to repeat them", file=sys.stderr)
    taken, planned, failed = 0.0, 0.0, []
    for number, run in enumerate(runs):
        announce(number, runs, taken, planned)
        start = time.monotonic()
        if subprocess.run(command(run, args.out, args.threads), check=False).returncode:
            failed.append(run.name)
        taken, planned = taken + (time.monotonic() - start) / 60, planned + run.minutes
    (args.out / "tables.md").write_text(page(args.out), encoding="utf-8")
    print(f"figures and tables: {args.out}", file=sys.stderr)
    if failed:
        sys.exit(f"these failed, and what they said is above: {', '.join(failed)}. Run it again to repeat them alone.")


if __name__ == "__main__":
    main()
