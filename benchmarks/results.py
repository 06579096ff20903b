"""What a benchmark found: shown as tables, and kept as JSON from which the pages' tables are made."""

from __future__ import annotations

import json
import os
import platform
import sys
from dataclasses import asdict, dataclass, field, is_dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table as RichTable

import lmfusion
from lmfusion.checkpoint.atomic_files import replacing

ROOT = Path(__file__).resolve().parents[1]
WIDTH = 150  # of a table, wherever it is printed to


@dataclass(frozen=True)
class Table:
    """Rows of text under a title; the first column names them."""

    title: str
    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)

    def show(self) -> None:
        """Print it."""
        table = RichTable()
        for number, column in enumerate(self.columns):
            table.add_column(column, justify="right" if number else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*row)
        console = Console()
        console.width = max(console.width, WIDTH)
        console.print(f"\n{self.title}:", table, sep="\n", highlight=False, soft_wrap=True)

    def markdown(self) -> str:
        """For a page."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def machine(threads: int) -> dict[str, Any]:
    """What this runs on, and the versions of what runs."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    installed = "ve-fairseq" if sys.version_info >= (3, 11) else "fairseq"
    return {
        "gpu": gpu,
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": threads,
        "waiting": os.environ.get("OMP_WAIT_POLICY"),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fairseq": version(installed),
        "lmfusion": lmfusion.__version__,
    }


def _processor() -> str:
    """The CPU's name as the system gives it; virtual machines hide the generation, which family and model tell."""
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n\n")[0].splitlines()
        facts = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        if "model name" in facts:
            return f"{facts['model name']} (family {facts.get('cpu family')} model {facts.get('model')})"
    return platform.processor() or platform.machine()


def report(name: str, args: Any, tables: list[Table], **figures: Any) -> None:
    """Print the tables below the machine, and write all as JSON where ``--json`` was given.

    Args:
        name: of the benchmark.
        args: its flags.
        tables: to show.
        figures: everything measured.
    """
    print(", ".join(f"{key} {value}" for key, value in machine(args.threads).items() if value is not None))
    for table in tables:
        table.show()
    save(name, args, tables, figures)


def save(name: str, args: Any, tables: list[Table], figures: dict[str, Any]) -> None:
    """Write all as JSON where ``--json`` was given, in place of what was there; arguments as of :func:`report`."""
    if args.json is None:
        return
    settings = {key: value for key, value in vars(args).items() if key not in ("json", "figures", "given")}
    found = {"command": [name, *_repeatable(args.given)], "machine": machine(args.threads), "settings": settings}
    found.update(tables=tables, figures=figures)
    args.json.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(found, indent=1, default=_plain, ensure_ascii=False) + "\n"
    with replacing(args.json) as stream:
        stream.write(text.encode())


def _repeatable(arguments: list[str]) -> list[str]:
    """A command line without the folders of whoever ran it."""
    paths = ("--json", "--figures")
    pairs = zip(["", *arguments], arguments)
    return [argument for before, argument in pairs if argument not in paths and before not in paths]


def _plain(value: Any) -> Any:
    if isinstance(value, Path) and value.is_relative_to(ROOT):
        return str(value.relative_to(ROOT))
    return asdict(value) if is_dataclass(value) and not isinstance(value, type) else str(value)
