"""What it takes to get the same figures again: signatures, code, versions, machines, data, commands."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.runs import Run
from lmfusion.report.page.speed_table import describe
from lmfusion.report.page.table import Cell, Table

_SIGNATURES = {"signature": "signature", "legacy_signature": "as sacreBLEU 1.x", "chrf_signature": "signature"}


@dataclass(frozen=True)
class Commands:
    """What was run, step by step."""

    run: str
    remark: str
    steps: list[tuple[str, str]]


def repeat_tables(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> list[Table]:
    """Signatures, environments and data; equal ones in one line."""
    readable = [run for run in runs if not run.broken]
    tables = [_signatures(comparisons), _environments(readable), _data(readable)]
    return [table for table in tables if table.rows]


def commands(runs: Sequence[Run]) -> list[Commands]:
    """The commands of every run."""
    found = []
    for run in runs:
        steps = [(name, shlex.join(step["command"])) for name, step in run.record.get("steps", {}).items()]
        seed = f"seed {run.seed}" if run.seed is not None else ""
        if steps:
            found.append(Commands(run.name, seed, steps))
    return found


def _signatures(comparisons: Sequence[Comparison]) -> Table:
    rows = []
    for comparison in comparisons:
        entries = [run.scores[name] for run in comparison.runs for name in comparison.data_sets if name in run.scores]
        seen = dict.fromkeys((key, str(entry[key])) for entry in entries for key in _SIGNATURES if entry.get(key))
        rows += [[Cell(comparison.task.title), Cell(_SIGNATURES[key]), Cell(value)] for key, value in seen]
        digests = dict.fromkeys(str(e["reference_sha256"]) for e in entries if e.get("reference_sha256"))
        if len(comparison.data_sets) == 1:
            title = Cell(comparison.task.title)
            rows += [[title, Cell("SHA-256 of the reference"), Cell(digest)] for digest in digests]
    return Table("signatures", "Signatures", ["test set", "", ""], rows, words=(1, 2))


def _environments(runs: Sequence[Run]) -> Table:
    """Commit, versions and machine."""
    members: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        key = {name: run.record.get(name) for name in ("git_commit", "versions", "machine")}
        members[json.dumps(key, sort_keys=True)].append(run)
    rows = []
    for group in members.values():
        record = group[0].record
        versions = ", ".join(f"{name} {version}" for name, version in (record.get("versions") or {}).items())
        commit = record.get("git_commit") or "not in a repository"
        machine = describe(record.get("machine") or {})
        rows.append([Cell(_names(group)), Cell(str(commit)), Cell(versions), Cell(machine)])
    notes = ["+changes: files differed from the commit."] if any("+changes" in row[1].text for row in rows) else []
    columns = ["runs", "commit", "versions", "machine"]
    return Table("environments", "Code, versions, machines", columns, rows, notes, words=(1, 2, 3))


def _data(runs: Sequence[Run]) -> Table:
    members: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        for name, digest in run.data_sha256.items():
            members[name, digest].append(run)
    files = sorted(members.items(), key=lambda item: item[0][0])
    rows = [[Cell(name), Cell(digest), Cell(_names(group))] for (name, digest), group in files]
    return Table("data", "Data", ["file", "SHA-256", "runs"], rows, words=(1, 2))


def _names(runs: Sequence[Run], most: int = 6) -> str:
    names = [run.name for run in runs]
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
