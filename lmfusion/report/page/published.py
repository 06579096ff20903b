"""The figures of Edunov, Baevski and Auli (2019), as far as a table of ours has a place for them."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

SIZE_TOLERANCE = 0.01
SPEED_OF = ("en", "de")
"""The languages that the paper's speeds were measured on."""
_NEWSTEST = re.compile(r"newstest(20\d\d)|wmt(\d\d)")


@lru_cache(maxsize=1)
def _figures() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(Path(__file__).with_name("published.json").read_text(encoding="utf-8"))
    return content


def source() -> str:
    """Return where the figures are from."""
    return str(_figures()["source"])


def year_of(data_set: str) -> int | None:
    """Return the year of a WMT news test set, called newstest2018 or, as sacreBLEU does, wmt18; None of any other."""
    match = _NEWSTEST.fullmatch(data_set)
    return (int(match[1]) if match[1] else 2000 + int(match[2])) if match else None


def covers(data_sets: Mapping[str, int | None], language_pair: tuple[str, str]) -> bool:
    """Tell whether test sets are the paper's, by their names, languages and numbers of sentences.

    Somebody else's data may well be called newstest2018; they hardly have as many sentences, too.

    Args:
        data_sets: number of sentences or summaries by name; None if unknown.
        language_pair: source and target.
    """
    if len(data_sets) == 1 and (summaries := _figures()["summarization"].get(next(iter(data_sets)))):
        return bool(summaries["summaries"] == next(iter(data_sets.values())))
    experiment = _figures()["translation"].get("-".join(language_pair))
    if experiment is None or not data_sets:
        return False
    known = dict(zip(experiment["test_sets"], experiment["sentences"]))
    return all(known.get(f"newstest{year_of(name)}", 0) == count for name, count in data_sets.items())


def score(
    data_sets: Sequence[str], language_pair: tuple[str, str], strategy: str, size: int | None, metric: str
) -> float | None:
    """Return the published score of a strategy at a bitext size, the average of the test sets; None if there is none.

    Sizes within 1% of a published one are taken to be the same.
    """
    if metric.startswith("ROUGE"):
        return _rouge(data_sets, strategy, metric)
    if metric != "BLEU":
        return None
    experiment = _figures()["translation"].get("-".join(language_pair))
    names = [f"newstest{year_of(name)}" for name in data_sets]
    if experiment is None or any(name not in experiment["test_sets"] for name in names):
        return None
    by_size = experiment["rows"].get(strategy, {})
    known = next((key for key in by_size if size and abs(size - int(key)) <= SIZE_TOLERANCE * int(key)), None)
    if known is None:
        return None
    values = [by_size[known][experiment["test_sets"].index(name)] for name in names]
    return float(values[0]) if len(values) == 1 else statistics.fmean(values)


def _rouge(data_sets: Sequence[str], strategy: str, metric: str) -> float | None:
    experiment = _figures()["summarization"].get(data_sets[0]) if len(data_sets) == 1 else None
    if experiment is None or strategy not in experiment["rows"]:
        return None
    return float(experiment["rows"][strategy][experiment["metrics"].index(metric)])


def speed_ratio(strategy: str, column: int) -> float | None:
    """Return published tokens/s of a strategy over those of SHARED (Table 5); column 0 is training, 1 is generation."""
    rows = _figures()["speed"]["rows"]
    return rows[strategy][column] / rows["SHARED"][column] if strategy in rows else None


def differences(strategy: str) -> list[tuple[int, float]]:
    """Return Figure 1: BLEU over the baseline's by bitext size, English-German, average of newstest2012 to 2017."""
    experiment = _figures()["translation"]["en-de"]
    ours, baseline = experiment["rows"][strategy], experiment["rows"]["baseline"]
    return [(int(size), statistics.fmean(ours[size][:6]) - statistics.fmean(baseline[size][:6])) for size in ours]


def strategies() -> list[str]:
    """Return the rows of Table 4."""
    return list(_figures()["translation"]["en-de"]["rows"])
