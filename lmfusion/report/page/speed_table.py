"""Speed in the layout of the paper's Table 5, with the ratio to the baseline."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from lmfusion.report.page import published
from lmfusion.report.page.comparison import Comparison, Row, mean, spread
from lmfusion.report.page.runs import Run
from lmfusion.report.page.table import Cell, Table

Conditions = tuple[Mapping[str, Any], Mapping[str, Any]]
STEPS = ("train", "generate")
_OF_SPEED = (
    *("OMP_NUM_THREADS", "OMP_WAIT_POLICY", "MKL_NUM_THREADS", "WORLD_SIZE", "SLURM_NTASKS", "SLURM_NNODES"),
    "NVIDIA_TF32_OVERRIDE",
)
COLUMNS = ("", "training, tokens/s", "× baseline", "generation, tokens/s", "× baseline")
HEADINGS = (
    *("row", "step", "mean tokens/s", "standard deviation", "runs"),
    *("ratio to baseline", "published ratio to SHARED"),
)


def speed_tables(comparison: Comparison) -> list[Table]:
    """A table for each kind of machine and way to start, for speeds of different ones cannot be compared."""
    found: list[Conditions] = []
    for run in comparison.runs:
        if _conditions(run) not in found:
            found.append(_conditions(run))
    prefix = f"{comparison.slug}-" if comparison.slug else ""
    tables = []
    for number, conditions in enumerate(found, start=1):
        name = f"{prefix}speed" if len(found) == 1 else f"{prefix}speed-{number}"
        table = _table(comparison, name, conditions)
        if table.rows:
            tables.append(table)
    return tables


def _conditions(run: Run) -> Conditions:
    """The machine, and how training (or, where nothing is trained, generation) was started on it."""
    launch = (run.step("train") or run.step("generate")).get("launch") or {}
    variables = {name: value for name, value in (launch.get("environment") or {}).items() if name in _OF_SPEED}
    return run.record.get("machine") or {}, {**launch, "environment": variables} if launch else {}


def _table(comparison: Comparison, name: str, conditions: Conditions) -> Table:
    speeds = {row.name: _speeds(row, conditions) for row in comparison.rows}
    base = speeds[comparison.baseline.name] if comparison.baseline else {}
    rows = [[Cell(row.name), *_cells(row, speeds[row.name], base)] for row in comparison.rows if speeds[row.name]]
    records = [
        record for row in comparison.rows for step in STEPS if (record := _record(row, step, speeds[row.name], base))
    ]
    notes = [
        f"{describe(conditions[0])}{_started(conditions[1])}. Training: target tokens, the median of a run's logging "
        "intervals; generation: what fairseq-generate counts. Mean over all runs of a row, of every size and seed that "
        "finished that step."
    ]
    if any(cell.note for row in rows for cell in row):
        notes.append("paper: its ratio, which is to SHARED (its Table 5).")
    return Table(name, f"Speed, {comparison.task.title}", COLUMNS, rows, notes, records=[HEADINGS, *records])


def describe(machine: Mapping[str, Any]) -> str:
    """A machine in words."""
    if not machine:
        return "Unknown machine"
    cores = machine.get("cores")
    words = [machine.get("gpu"), f"{cores} CPU core{'s' if cores != 1 else ''}", machine.get("processor")]
    return ", ".join(str(word) for word in (*words, machine.get("system")) if word)


def _started(launch: Mapping[str, Any]) -> str:
    """How training was started, in words."""
    processes = [f"{name} {value}" for name, value in (launch.get("processes") or {}).items()]
    variables = [f"{name}={value}" for name, value in (launch.get("environment") or {}).items()]
    words = [*(launch.get("precision") or []), *processes, *variables]
    return f"; training started with {', '.join(map(str, words))}" if words else ""


def _speeds(row: Row, conditions: Conditions) -> dict[str, list[float]]:
    """By step, of the runs on one machine, started in one way."""
    found: dict[str, list[float]] = defaultdict(list)
    for run in row.runs:
        for step in STEPS:
            speed = _speed(run, step)
            if speed and _conditions(run) == conditions:
                found[step].append(speed)
    return found


def _speed(run: Run, step: str) -> float | None:
    """Of a step that finished; a baseline that learns nothing does not generate, it copies."""
    return run.result(step).get("tokens_per_second") if run.has_training else None


def _cells(row: Row, speeds: Mapping[str, list[float]], base: Mapping[str, list[float]]) -> list[Cell]:
    cells = []
    for column, step in enumerate(STEPS):
        average, deviation = mean(speeds.get(step, [])), spread(speeds.get(step, []))
        text = "" if average is None else f"{average:,.0f}" + ("" if deviation is None else f" ± {deviation:,.0f}")
        ratio, paper = _ratio(speeds, base, step), published.speed_ratio(row.strategy, column)
        note = f"paper {paper:.2f}" if paper is not None else ""
        cells += [Cell(text), Cell("" if ratio is None else f"{ratio:.2f}", note)]
    return cells


def _ratio(speeds: Mapping[str, list[float]], base: Mapping[str, list[float]], step: str) -> float | None:
    ours, theirs = mean(speeds.get(step, [])), mean(base.get(step, []))
    return ours / theirs if ours is not None and theirs else None


def _record(
    row: Row, step: str, speeds: Mapping[str, list[float]], base: Mapping[str, list[float]]
) -> list[object] | None:
    values = speeds.get(step, [])
    average, deviation, ratio = mean(values), spread(values), _ratio(speeds, base, step)
    if average is None:
        return None
    paper = published.speed_ratio(row.strategy, STEPS.index(step))
    rounded = ["" if value is None else round(value, 4) for value in (deviation, ratio, paper)]
    return [row.name, step, round(average, 2), rounded[0], len(values), *rounded[1:]]
