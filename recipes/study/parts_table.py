"""Where the chosen models differ: BLEU of the parts of each test set, against the best row without a language model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean

from lmfusion.report.page.buckets_figure import buckets_figure
from lmfusion.scoring import buckets
from lmfusion.scoring.buckets import PartScores
from study.finals import Finals, TestSet, best
from study.plan import Plan

HEADING = "Parts, {size:,} pairs"
PICTURE = "parts-{size}.svg"
NOTE = (
    "BLEU of the first row, and what the others have more or less; below, shares of names and words. Means over the "
    "seeds of a row. A rare word stands fewer than five times in the target side of the training pairs; the LM's text "
    "is the corpus' plain text of the target language, which a row may or may not have read; a name is a word with a "
    "capital letter, of three letters or more, that source and reference share."
)


def sections(plan: Plan, found: Iterable[Finals]) -> tuple[str, dict[str, str]]:
    """Return a table for each bitext size and test set where two rows are scored, and figures (SVG) by file name."""
    text, pictures = "", {}
    for each in found:
        compared = [(test, rows) for test in each.tests if len(rows := _rows(plan, each, test)) > 1]
        if not compared:
            continue
        tables, texts = [], _texts(plan, each.size)
        for test, rows in compared:
            scores = _scores(test, rows, texts)
            tables += [f"**{test.name.capitalize()}**", _table(test, rows, scores)]
            if test is each.tests[0]:
                name = PICTURE.format(size=each.size)
                pictures[name] = buckets_figure(scores).svg
                tables.append(f"![BLEU minus that of {rows[0]}, {test.name} test]({name})")
        text += "\n" + "\n\n".join([f"## {HEADING.format(size=each.size)}", *tables, NOTE]) + "\n"
    return text, pictures


def _texts(plan: Plan, size: int) -> dict[str, Sequence[str]]:
    """Return what :func:`lmfusion.scoring.buckets.parts` can be told of this corpus."""
    target = plan.task.sides[1]
    found: dict[str, Sequence[str]] = {"training_targets": plan.task.lines("train", target)[:size]}
    if plan.task.has("mono.train", target):
        found["lm_text"] = plan.task.lines("mono.train", target)
    return found


def _rows(plan: Plan, found: Finals, test: TestSet) -> list[str]:
    """Return the rows that have translated a test set, the one that the others are compared with first."""
    first, _ = best(plan, found.size)
    return sorted((row for row in found.rows if row in test.hypotheses), key=lambda row: row != first)


def _scores(test: TestSet, rows: Sequence[str], texts: Mapping[str, Sequence[str]]) -> list[PartScores]:
    """Return the mean over seeds of each row's BLEU on each part."""
    divided = buckets.parts(test.sources, test.references, **texts)
    systems = {(row, seed): lines for row in rows for seed, lines in enumerate(test.hypotheses[row])}
    named = {f"{row} {seed}": lines for (row, seed), lines in systems.items()}
    return [
        PartScores(
            each.part, {row: fmean(each.bleu[f"{row} {seed}"] for of, seed in systems if of == row) for row in rows}
        )
        for each in buckets.score(divided, named, test.references)
    ]


def _table(test: TestSet, rows: Sequence[str], scores: Sequence[PartScores]) -> str:
    lines = [f"| | sentences | {' | '.join(rows)} |", f"|---|---:|{'---:|' * len(rows)}"]
    first, *others = rows
    for each in scores:
        cells = [f"{each.bleu[first]:.2f}", *(f"{each.bleu[row] - each.bleu[first]:+.2f}" for row in others)]
        lines.append(f"| {each.part.question}: {each.part.name} | {len(each.part.lines):,} | {' | '.join(cells)} |")
    for question, share in buckets.SHARES.items():
        values = [[share(test.sources, test.references, text) for text in test.hypotheses[row]] for row in rows]
        lines.append(f"| {buckets.SAID[question]} | | {' | '.join(map(_percent, values))} |")
    return "\n".join(lines)


def _percent(values: Sequence[float]) -> str:
    return "none" if any(map(math.isnan, values)) else f"{fmean(values):.1%}"
