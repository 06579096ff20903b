"""The chosen models that are scored: their translations of the development and the blind test, by row and seed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from study import report
from study.plan import Plan
from study.results import BLIND
from study.search import Tried
from study.task import Task

WITHOUT_LM = ("baseline", "shared", "lstm")
"""Rows that learn from nothing but the pairs; which of them is the best is known by validation."""


@dataclass(frozen=True)
class TestSet:
    """A test set, and for each row the hypotheses of every seed that has translated it."""

    name: str
    sources: Sequence[str]
    references: Sequence[str]
    hypotheses: Mapping[str, Sequence[Sequence[str]]]


@dataclass(frozen=True)
class Finals:
    """What is scored of one bitext size."""

    size: int
    rows: Sequence[str]
    """Those without a language model first."""
    tests: Sequence[TestSet]


def finals(plan: Plan) -> Iterator[Finals]:
    """Yield the scored models of each bitext size that has any; none without a search."""
    sizes = dict.fromkeys(cell.size for cell in plan.cells() if cell.size and plan.budget.search)
    for size in sizes:
        runs = [(cell.row, report.run_of(plan, cell)) for cell in plan.cells() if cell.size == size]
        scored = [(row, run) for row, run in runs if run and "bleu" in run.scores.get("test", {})]
        if scored:
            rows = sorted(dict.fromkeys(row for row, _ in scored), key=lambda row: row not in WITHOUT_LM)
            developed = _hypotheses((row, run.hypotheses("test")) for row, run in scored)
            blind = _hypotheses((row, run.file(BLIND)) for row, run in scored)
            yield Finals(size, rows, _test_sets(plan.task, developed, blind))


def best(plan: Plan, size: int) -> tuple[str, Mapping[str, Tried]]:
    """Return the best row without a language model by validation, and the choices it is known by; "" without any."""
    chosen = plan.chosen()
    found = {row: chosen[row, size] for row in WITHOUT_LM if (row, size) in chosen}
    return min(found, key=lambda row: found[row].bits, default=""), found


def _test_sets(
    task: Task, developed: Mapping[str, list[list[str]]], blind: Mapping[str, list[list[str]]]
) -> list[TestSet]:
    """Return the corpus' test, of a task with a blind one as its development test, and that where it is translated."""
    source, target = task.sides
    tests = [
        TestSet(
            "development" if task.blind else "test", task.lines("test", source), task.lines("test", target), developed
        )
    ]
    if blind:
        tests.append(TestSet("blind", task.blind_lines(source), task.blind_lines(target), blind))
    return tests


def _hypotheses(paths: Iterable[tuple[str, Path]]) -> dict[str, list[list[str]]]:
    """Read the files that are there, by row."""
    found: dict[str, list[list[str]]] = {}
    for row, path in paths:
        if path.is_file():
            found.setdefault(row, []).append(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    return found
