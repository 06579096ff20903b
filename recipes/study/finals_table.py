"""What the chosen models score on the development and the blind test, and the protocol's differences between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lmfusion.runs.run_folder import RunFolder
from lmfusion.scoring.bleu import score
from lmfusion.scoring.seeds import Row, SeedsResult, compare
from study import report
from study.plan import Plan
from study.results import BLIND
from study.task import Task

SCORES, DIFFERENCES = "Finals, {size:,} pairs", "Differences, {size:,} pairs"
WITHOUT_LM = ("baseline", "shared", "lstm")
"""Rows that learn from nothing but the pairs; which of them is the best is known by validation."""
BEST = "best without a language model"
QUESTIONS = (
    ("1", "src_elmo_shdemb", BEST),
    ("2", "back_translation_src_elmo_shdemb", "shared_back_translation"),
    ("4", "lstm_src_elmo", "lstm"),
    ("5", "src_elmo_shdemb", "denoising"),
    ("5", "lstm_src_elmo", "denoising"),
    ("6", "lstm_denoising", "lstm"),
)
"""(number, row, row that it is compared with), as recipes/PROTOCOL.md asks; its third asks for scores alone."""
NOTE = (
    "BLEU / chrF; ±: standard deviation over seeds, from three on. Development: the corpus' test set, which has been "
    "looked at; blind: out of domain."
)
INTERVALS = (
    "BLEU / chrF, each with the 95% interval of a bootstrap over sentences and seeds. Bold: the interval "
    "excludes 0. With one seed of a row it does not include variation between seeds."
)


@dataclass(frozen=True)
class TestSet:
    """A test set's references, and for each row the hypotheses of every seed that has translated it."""

    name: str
    references: Sequence[str]
    hypotheses: Mapping[str, Sequence[Sequence[str]]]


def sections(plan: Plan) -> str:
    """Return scores and differences for each bitext size where a chosen model is scored; nothing without a search."""
    if not plan.budget.search:
        return ""
    sizes = dict.fromkeys(cell.size for cell in plan.cells() if cell.size)
    return "".join(_section(plan, size) for size in sizes)


def _section(plan: Plan, size: int) -> str:
    runs = [(cell.row, report.run_of(plan, cell)) for cell in plan.cells() if cell.size == size]
    scored = [(row, run) for row, run in runs if run and "bleu" in run.scores.get("test", {})]
    if not scored:
        return ""
    rows = sorted(dict.fromkeys(row for row, _ in scored), key=lambda row: row not in WITHOUT_LM)
    tests = _test_sets(plan.task, scored)
    table = [f"| row | {' | '.join(test.name for test in tests)} |", f"|---|{'---:|' * len(tests)}"]
    table += [f"| {row} | {' | '.join(_scores(test, row) for test in tests)} |" for row in rows]
    best, said = _best(plan, size)
    once = score(tests[0].hypotheses[rows[0]][0], tests[0].references)
    signatures = f"{once.signature}<br>{once.chrf_signature}"
    parts = [f"## {SCORES.format(size=size)}", "\n".join(table), NOTE, said, signatures]
    if pairs := _comparisons(rows, best):
        parts += [f"## {DIFFERENCES.format(size=size)}", *_differences(tests, pairs)]
    return "\n" + "\n\n".join(parts) + "\n"


def _test_sets(task: Task, scored: Sequence[tuple[str, RunFolder]]) -> list[TestSet]:
    """Return the development test and, where a row has translated it, the blind one."""
    target = task.sides[1]
    found = _hypotheses((row, run.hypotheses("test")) for row, run in scored)
    tests = [TestSet("development", task.lines("test", target), found)]
    if blind_found := _hypotheses((row, run.file(BLIND)) for row, run in scored):
        tests.append(TestSet("blind", task.blind_lines(target), blind_found))
    return tests


def _hypotheses(paths: Iterable[tuple[str, Path]]) -> dict[str, list[list[str]]]:
    """Read the files that are there, by row."""
    found: dict[str, list[list[str]]] = {}
    for row, path in paths:
        if path.is_file():
            found.setdefault(row, []).append(path.read_text(encoding="utf-8").removesuffix("\n").split("\n"))
    return found


def _scores(test: TestSet, row: str) -> str:
    if not (found := [score(each, test.references) for each in test.hypotheses.get(row, ())]):
        return ""
    bleu, chrf = (Row(tuple(values)) for values in zip(*((each.bleu, each.chrf) for each in found)))
    spread = ["" if each.deviation is None else f" ± {each.deviation:.2f}" for each in (bleu, chrf)]
    seeds = f"{len(found)} seed{'s' if len(found) > 1 else ''}"
    return f"{bleu.mean:.2f}{spread[0]} / {chrf.mean:.2f}{spread[1]} ({seeds})"


def _best(plan: Plan, size: int) -> tuple[str, str]:
    """Return the best row without a language model of those that are chosen, and a sentence that says it."""
    chosen = plan.chosen()
    bits = {row: chosen[row, size].bits for row in WITHOUT_LM if (row, size) in chosen}
    missing = [row for row in WITHOUT_LM if row not in bits]
    if not bits:
        return "", "No row without a language model has been chosen yet."
    best = min(bits, key=lambda row: bits[row])
    so_far = f", of those whose search is over; that of {' and '.join(missing)} is not" if missing else ""
    return best, f"The best row without a language model, by validation{so_far}: {best} ({bits[best]:.3f})."


def _comparisons(rows: Sequence[str], best: str) -> list[tuple[str, str, str]]:
    """Return (question or nothing, row, row to compare it with) of scored rows, each pair once."""
    asked = {(row, best if other == BEST else other): number for number, row, other in QUESTIONS}
    usual = [*((row, best) for row in rows if row != "baseline"), *((row, "baseline") for row in rows)]
    pairs = {**asked, **{pair: "" for pair in usual if pair not in asked}}
    return [(number, *pair) for pair, number in pairs.items() if pair[0] != pair[1] and set(pair) <= set(rows)]


def _differences(tests: Sequence[TestSet], pairs: Sequence[tuple[str, str, str]]) -> list[str]:
    table = [
        f"| question | row | to | {' | '.join(test.name for test in tests)} |",
        f"|---|---|---|{'---:|' * len(tests)}",
    ]
    signatures: dict[str, None] = {}
    for number, row, other in pairs:
        cells = []
        for test in tests:
            both = test.hypotheses.get(row), test.hypotheses.get(other)
            results = compare(both[0], both[1], test.references) if both[0] and both[1] else []
            cells.append(" / ".join(map(_difference, results)))
            signatures.update(dict.fromkeys(each.signature for each in results))
        table.append(f"| {number} | {row} | {other} | {' | '.join(cells)} |")
    return ["\n".join(table), INTERVALS, "<br>".join(signatures)]


def _difference(result: SeedsResult) -> str:
    low, high = result.interval
    shown = f"{result.difference:+.2f}"
    return f"{f'**{shown}**' if result.is_beyond_chance else shown} ({low:+.2f} to {high:+.2f})"
