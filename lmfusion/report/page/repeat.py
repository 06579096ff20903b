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
from lmfusion.report.page.table import Table, cells

_SIGNATURES = {"signature": "signature", "legacy_signature": "as sacreBLEU 1.x", "chrf_signature": "signature"}
_MOST_NAMES = 6


@dataclass(frozen=True)
class Commands:
    """Command lines of a run, step by step."""

    run: str
    remark: str
    steps: list[tuple[str, str]]


def repeat_tables(runs: Sequence[Run], comparisons: Sequence[Comparison]) -> list[Table]:
    """Return signatures, environments and data; what several runs share stands in one line."""
    readable = [run for run in runs if not run.broken]
    tables = [_signatures(comparisons), _environments(readable), _data(readable)]
    return [table for table in tables if table.rows]


def commands(runs: Sequence[Run]) -> list[Commands]:
    """Return the commands of every run, quoted for a shell."""
    found = []
    for run in runs:
        steps = [(name, shlex.join(step["command"])) for name, step in run.record.get("steps", {}).items()]
        if steps:
            found.append(Commands(run.name, f"seed {run.seed}" if run.seed is not None else "", steps))
    return found


def _signatures(comparisons: Sequence[Comparison]) -> Table:
    rows = []
    for comparison in comparisons:
        title, entries = comparison.task.title, comparison.entries
        seen = dict.fromkeys((key, str(entry[key])) for entry in entries for key in _SIGNATURES if entry.get(key))
        rows += [cells(title, _SIGNATURES[key], value) for key, value in seen]
        digests = dict.fromkeys(entry["reference_sha256"] for entry in entries if entry.get("reference_sha256"))
        if len(comparison.data_sets) == 1:
            rows += [cells(title, "SHA-256 of the reference", digest) for digest in digests]
    return Table("signatures", "Signatures", ["test set", "", ""], rows, words=(1, 2))


def _environments(runs: Sequence[Run]) -> Table:
    """Return commit, versions and machine."""
    members: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        key = {name: run.record.get(name) for name in ("git_commit", "versions", "machine")}
        members[json.dumps(key, sort_keys=True)].append(run)
    rows = []
    for group in members.values():
        record = group[0].record
        versions = ", ".join(f"{name} {version}" for name, version in (record.get("versions") or {}).items())
        commit = record.get("git_commit") or "not in a repository"
        rows.append(cells(_names(group), commit, versions, describe(record.get("machine") or {})))
    notes = ["+changes: files differed from the commit."] if any("+changes" in row[1].text for row in rows) else []
    columns = ["runs", "commit", "versions", "machine"]
    return Table("environments", "Code, versions, machines", columns, rows, notes, words=(1, 2, 3))


def _data(runs: Sequence[Run]) -> Table:
    members: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        for file in run.data_sha256.items():
            members[file].append(run)
    rows = [cells(*file, _names(members[file])) for file in sorted(members, key=lambda file: file[0])]
    return Table("data", "Data", ["file", "SHA-256", "runs"], rows, words=(1, 2))


def _names(runs: Sequence[Run]) -> str:
    more = f" and {len(runs) - _MOST_NAMES} more" if len(runs) > _MOST_NAMES else ""
    return ", ".join(run.name for run in runs[:_MOST_NAMES]) + more
