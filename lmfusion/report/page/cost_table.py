"""Scores beside what they cost: parameters, training time, speed of decoding, of all rows at one bitext size."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from string import ascii_lowercase

import pandas as pd

from lmfusion.report.page.comparison import Comparison
from lmfusion.report.page.run_tables import parameters
from lmfusion.report.page.runs import Run
from lmfusion.report.page.speed_table import Conditions, conditions_of, describe_conditions
from lmfusion.report.page.table import Cell, Table
from lmfusion.runs.live_line import clock

COLUMNS = ("parameters, M", "training", "decoding, tokens/s")
HEADINGS = ["row", "parameters, M", "seconds of training", "tokens/s of decoding", "letter"]
UNKNOWN = "—"


def cost_table(comparison: Comparison, scores: Table) -> Table | None:
    """Return the table of scores with three more columns; None where there are several bitext sizes or no training.

    Args:
        comparison: of runs.
        scores: its table of scores, with a column a metric.
    """
    if len(comparison.sizes) != 1 or not any(run.has_training for run in comparison.runs):
        return None
    places = _places(comparison)
    used = {row.name: row.cell(comparison.sizes[0]).used for row in comparison.rows}
    rows, records = [], []
    for cells in scores.rows:
        runs = used[cells[0].text]
        size = next((text for run in runs if (text := parameters(run))), "")
        seconds = _mean([run.step("train").get("seconds") for run in runs])
        speed = _mean([run.result("generate").get("tokens_per_second") for run in runs])
        letters = " ".join(sorted({letter for run in runs if (letter := _letter(places, run))}))
        time = Cell(UNKNOWN) if seconds is None else Cell(clock(seconds), letters)
        decoding = Cell(UNKNOWN) if speed is None else Cell(f"{speed:,.0f}", letters)
        rows.append([*cells, Cell(size or UNKNOWN), time, decoding])
        records.append([cells[0].text, size, seconds, speed, letters])
    return Table(
        f"{comparison.prefix}costs",
        f"Scores and costs, {scores.title}",
        [*scores.columns, *COLUMNS],
        rows,
        [*scores.notes, _note(places)],
        records=pd.DataFrame(records, columns=HEADINGS),
    )


def _places(comparison: Comparison) -> list[Conditions]:
    """Return the machines and ways to start, that of the baseline's runs first."""
    base = comparison.baseline
    runs = [*(run for cell in base.cells.values() for run in cell.used), *comparison.runs] if base else comparison.runs
    found: list[Conditions] = []
    for run in runs:
        if conditions_of(run) not in found:
            found.append(conditions_of(run))
    return found


def _letter(places: Sequence[Conditions], run: Run) -> str:
    """Return the letter of a run's conditions; empty for the first ones."""
    number = places.index(conditions_of(run))
    return ascii_lowercase[(number - 1) % len(ascii_lowercase)] if number else ""


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _note(places: Sequence[Conditions]) -> str:
    """Say what the three columns count, and on what they were measured."""
    where = [describe_conditions(places[0])]
    where += [f"{letter}: {describe_conditions(place)}" for letter, place in zip(ascii_lowercase, places[1:])]
    rest = " Only times under the same letter, or none, can be compared." if len(places) > 1 else ""
    return (
        "Parameters: those trained, + those of a frozen language model. Training: of this model alone, whatever was "
        "pretrained before. Decoding: what fairseq-generate counts. Means over the runs of a row; what else the "
        f"machine had to do is not known. Measured on {'; '.join(where)}.{rest}"
    )
