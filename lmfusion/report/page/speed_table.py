"""Speed in the layout of the paper's Table 5, with the ratio to the baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from lmfusion.report.page import published
from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.runs import Run
from lmfusion.report.page.table import Cell, Table, plus_minus

Conditions = tuple[Mapping[str, Any], Mapping[str, Any]]
STEPS = ("train", "generate")
_OF_SPEED = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES"),
    "NVIDIA_TF32_OVERRIDE",
)
COLUMNS = ("", "training, tokens/s", "× baseline", "generation, tokens/s", "× baseline")
HEADINGS = [
    *("row", "step", "mean tokens/s", "standard deviation", "runs"),
    *("ratio to baseline", "published ratio to SHARED"),
]


def speed_tables(comparison: Comparison) -> list[Table]:
    """Return a table for each kind of machine and way to start, for speeds of different ones cannot be compared."""
    found: list[Conditions] = []
    for run in comparison.runs:
        if conditions_of(run) not in found:
            found.append(conditions_of(run))
    tables = []
    for number, conditions in enumerate(found, start=1):
        name = f"{comparison.prefix}speed" + (f"-{number}" if len(found) > 1 else "")
        speeds = _speeds(comparison, conditions)
        if len(speeds):
            tables.append(_table(comparison, name, conditions, speeds))
    return tables


def conditions_of(run: Run) -> Conditions:
    """Return the machine, and how training (or, where nothing is trained, generation) was started on it."""
    launch = (run.step("train") or run.step("generate")).get("launch") or {}
    variables = {name: value for name, value in (launch.get("environment") or {}).items() if name in _OF_SPEED}
    return run.record.get("machine") or {}, {**launch, "environment": variables} if launch else {}


def _speeds(comparison: Comparison, under: Conditions) -> pd.DataFrame:
    """Return mean, deviation and number of runs of each row and step, its ratio to the baseline's and the published.

    Of steps that finished; a baseline that learns nothing does not generate, it copies.
    """
    known = comparison.is_of_the_paper and comparison.task.language_pair == published.SPEED_OF
    found = [
        (row.name, step, speed, published.speed_ratio(row.strategy, STEPS.index(step)) if known else None)
        for row in comparison.rows
        for step in STEPS
        for run in row.runs
        if run.has_training and (speed := run.result(step).get("tokens_per_second")) and conditions_of(run) == under
    ]
    frame = pd.DataFrame(found, columns=["row", "step", "speed", HEADINGS[-1]])
    speeds = frame.groupby(["row", "step"], sort=False).agg(
        **{heading: ("speed", how) for heading, how in zip(HEADINGS[2:5], ("mean", "std", "count"))},
        **{HEADINGS[-1]: (HEADINGS[-1], "first")},
    )
    base = speeds["mean tokens/s"].get(comparison.baseline.name if comparison.baseline else "", pd.Series(dtype=float))
    speeds["ratio to baseline"] = speeds["mean tokens/s"] / base.reindex(speeds.index.get_level_values("step")).array
    return speeds


def _table(comparison: Comparison, name: str, conditions: Conditions, speeds: pd.DataFrame) -> Table:
    rows = []
    for row in dict.fromkeys(speeds.index.get_level_values("row")):
        cells = [Cell(str(row))]
        for step in STEPS:
            mean, deviation, _, paper, ratio = speeds.reindex([(row, step)]).iloc[0]
            note = "" if pd.isna(paper) else f"paper {paper:.2f}"
            cells += [Cell(plus_minus(mean, deviation, ",.0f")), Cell(plus_minus(ratio, float("nan"), ".2f"), note)]
        rows.append(cells)
    notes = [
        f"{describe_conditions(conditions)}. Training: target tokens, the median of a run's logging "
        "intervals; generation: what fairseq-generate counts. Mean over all runs of a row, of every size and seed that "
        "finished that step."
    ]
    if any(cell.note for row in rows for cell in row):
        notes.append("paper: its ratio, which is to SHARED (its Table 5).")
    records = speeds.round({"mean tokens/s": 2}).reset_index()[HEADINGS]
    return Table(name, f"Speed, {comparison.task.title}", COLUMNS, rows, notes, records=records)


def describe_conditions(found: Conditions) -> str:
    """Return a machine, and how training was started on it, in words."""
    return f"{describe(found[0])}{_started(found[1])}"


def describe(machine: Mapping[str, Any]) -> str:
    """Return a machine, as run.json records it, in words."""
    if not machine:
        return "Unknown machine"
    cores = machine.get("cores")
    words = [machine.get("gpu"), f"{cores} CPU core{'s' if cores != 1 else ''}", machine.get("processor")]
    return ", ".join(str(word) for word in (*words, machine.get("system")) if word)


def _started(launch: Mapping[str, Any]) -> str:
    """Return how training was started, in words."""
    processes = [f"{name} {value}" for name, value in (launch.get("processes") or {}).items()]
    variables = [f"{name}={value}" for name, value in (launch.get("environment") or {}).items()]
    words = [*(launch.get("precision") or []), *processes, *variables]
    return f"; training started with {', '.join(map(str, words))}" if words else ""
