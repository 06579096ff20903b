"""What the chosen models score on the development and the blind test, and the protocol's differences between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from lmfusion.scoring.bleu import score
from lmfusion.scoring.seeds import Row, SeedsResult, compare
from study.finals import WITHOUT_LM, Finals, TestSet, best
from study.plan import Plan
from study.search import Tried
from study.task import TASKS

SCORES, DIFFERENCES = "Finals, {size:,} pairs", "Differences, {size:,} pairs"
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
NOTE = "BLEU / chrF; ±: standard deviation over seeds, from three on."
BLIND_NOTE = " Development: the corpus' test set, which has been looked at; blind: out of domain."
INTERVALS = (
    "BLEU / chrF, each with the 95% interval of a bootstrap over sentences and seeds. Bold: the interval excludes "
    "0, and both rows have two seeds or more. Of n seeds such a bootstrap shows (n-1)/n of the variance between "
    "seeds, so it is too narrow; of one seed it shows none. The {count} intervals are not corrected for their "
    "number: of as many between equal rows {expected} would exclude 0."
)
FALSE = 0.05
"""Of 95% intervals between equal rows, the share that excludes 0."""


def sections(plan: Plan, found: Iterable[Finals]) -> str:
    """Return scores and differences of each bitext size where a chosen model is scored."""
    return "".join(_section(plan, each) for each in found)


def _section(plan: Plan, found: Finals) -> str:
    tests, size = found.tests, found.size
    table = [f"| row | {' | '.join(test.name for test in tests)} |", f"|---|{'---:|' * len(tests)}"]
    table += [f"| {row} | {' | '.join(_scores(test, row) for test in tests)} |" for row in found.rows]
    once = score(tests[0].hypotheses[found.rows[0]][0], tests[0].references)
    signatures = f"{once.signature}<br>{once.chrf_signature}"
    name, known = best(plan, size)
    note = NOTE + (BLIND_NOTE if plan.task.blind else "")
    first = TASKS[plan.task.settings_of].title.partition(",")[0] if plan.task.settings_of else ""
    parts = [f"## {SCORES.format(size=size)}", "\n".join(table), note, _best(name, known, first), signatures]
    if pairs := _comparisons(found.rows, name):
        parts += [f"## {DIFFERENCES.format(size=size)}", *_differences(tests, pairs)]
    return "\n" + "\n\n".join(parts) + "\n"


def _scores(test: TestSet, row: str) -> str:
    if not (found := [score(each, test.references) for each in test.hypotheses.get(row, ())]):
        return ""
    bleu, chrf = (Row(tuple(values)) for values in zip(*((each.bleu, each.chrf) for each in found)))
    spread = ["" if each.deviation is None else f" ± {each.deviation:.2f}" for each in (bleu, chrf)]
    seeds = f"{len(found)} seed{'s' if len(found) > 1 else ''}"
    return f"{bleu.mean:.2f}{spread[0]} / {chrf.mean:.2f}{spread[1]} ({seeds})"


def _best(name: str, known: Mapping[str, Tried], first: str) -> str:
    """Return a sentence that says which row without a language model is the best, and on which pair it was found."""
    if not known:
        return "No row without a language model has been chosen yet."
    missing = [row for row in WITHOUT_LM if row not in known]
    so_far = f", of those whose search is over; that of {' and '.join(missing)} is not" if missing else ""
    where = f" of {first}" if first else ""
    return f"The best row without a language model, by validation{where}{so_far}: {name} ({known[name].bits:.3f})."


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
    count = 0
    for number, row, other in pairs:
        cells = []
        for test in tests:
            both = test.hypotheses.get(row), test.hypotheses.get(other)
            results = compare(both[0], both[1], test.references) if both[0] and both[1] else []
            cells.append(" / ".join(map(_difference, results)))
            count += len(results)
            signatures.update(dict.fromkeys(each.signature for each in results))
        table.append(f"| {number} | {row} | {other} | {' | '.join(cells)} |")
    by_chance = round(FALSE * count)
    note = INTERVALS.format(count=count, expected=f"about {by_chance}" if by_chance else "hardly one")
    return ["\n".join(table), note, "<br>".join(signatures)]


def _difference(result: SeedsResult) -> str:
    low, high = result.interval
    shown = f"{result.difference:+.2f}"
    is_bold = result.is_beyond_chance and min(len(result.system.scores), len(result.baseline.scores)) > 1
    return f"{f'**{shown}**' if is_bold else shown} ({low:+.2f} to {high:+.2f})"
