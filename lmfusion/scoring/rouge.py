"""ROUGE-1, -2 and -L (summary level) as ``ROUGE-1.5.5.pl -m -a -n 2`` computes them (Lin 2004).

https://aclanthology.org/W04-1013. One reference per summary, Porter stemming, no stop word removed, precision and
recall of equal weight in F. With ``-m`` the script also replaces irregular forms by their base forms (mice, mouse),
if its data base of WordNet's exceptions has any. By default the numbers here are those that it prints with an empty
one, which is to say, with Porter's stemmer alone; ``exceptions`` takes the list where there is one.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Generic, TypeVar

import numpy as np

from lmfusion.errors import UserError
from lmfusion.scoring import perl_bootstrap
from lmfusion.scoring.lcs import union_lcs
from lmfusion.scoring.words import Sentences, fingerprint, reader

HEADINGS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
METRICS = tuple(HEADINGS)
INTERVAL = {"interval": f"95%-bootstrap-{perl_bootstrap.SAMPLES}-seeds-0-{perl_bootstrap.SAMPLES - 1}"}
_SPLIT_NAMES: dict[str | None, str] = {None: "none", "\n": "newline"}
T = TypeVar("T")


@dataclass(frozen=True)
class Measures(Generic[T]):
    """Something that there is of precision, recall and F1."""

    precision: T
    recall: T
    f1: T


PairScore = Measures[float]
"""All in 0..1, rounded to five decimals as the script does, and F1 computed from the rounded two."""


@dataclass(frozen=True)
class RougeScore:
    """ROUGE of a test set, 0..1, and how it was computed. Keys of the dictionaries: rouge1, rouge2, rougeL."""

    per_pair: list[dict[str, PairScore]]
    means: dict[str, Measures[float]]
    intervals: dict[str, Measures[tuple[float, float]]]
    """Ends of the 95% intervals from bootstrap resampling."""
    script_averages: dict[str, Measures[float]]
    """What the script prints as averages: means over its bootstrap samples, and so a little beside the means."""
    signature: str
    hypothesis_sentences: int
    reference_sentences: int

    def to_dict(self) -> dict[str, Any]:
        """All but the single pairs, ready for JSON."""
        return {
            **{metric: self._metric(metric) for metric in METRICS},
            "signature": self.signature,
            "summaries": len(self.per_pair),
            "hypothesis_sentences": self.hypothesis_sentences,
            "reference_sentences": self.reference_sentences,
        }

    def _metric(self, metric: str) -> dict[str, dict[str, float]]:
        result = {}
        for measure in ("f1", "precision", "recall"):
            low, high = getattr(self.intervals[metric], measure)
            result[measure] = {
                "mean": getattr(self.means[metric], measure),
                "low": low,
                "high": high,
                "script_average": getattr(self.script_averages[metric], measure),
            }
        return result


def score(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sentence_marker: str | None = "\n",
    exceptions: Mapping[str, str] | None = None,
) -> RougeScore:
    """ROUGE of summaries against one reference each.

    Args:
        hypotheses: one text per summary; an empty one counts as 0.
        references: one text per summary.
        sentence_marker: what stands between the sentences of a text, which ROUGE-L looks at one by one; None if a
            text is one sentence.
        exceptions: base forms by irregular form, from :func:`lmfusion.scoring.words.read_exceptions`.

    Raises:
        UserError: there are no summaries, the numbers differ, or the marker is empty.
    """
    ours, theirs = _read(hypotheses, references, sentence_marker, exceptions or {})
    per_pair = [score_pair(hypothesis, reference) for hypothesis, reference in zip(ours, theirs)]
    means, intervals, averages = _averages(per_pair)
    return RougeScore(
        per_pair=per_pair,
        means=means,
        intervals=intervals,
        script_averages=averages,
        signature=signature(sentence_marker, exceptions or {}, INTERVAL),
        hypothesis_sentences=sum(map(len, ours)),
        reference_sentences=sum(map(len, theirs)),
    )


def score_pairs(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sentence_marker: str | None,
    exceptions: Mapping[str, str],
) -> list[dict[str, PairScore]]:
    """ROUGE of each summary, without averages and intervals; arguments and errors as of :func:`score`."""
    return [score_pair(*pair) for pair in zip(*_read(hypotheses, references, sentence_marker, exceptions))]


def _read(
    hypotheses: Sequence[str], references: Sequence[str], marker: str | None, exceptions: Mapping[str, str]
) -> tuple[list[Sentences], list[Sentences]]:
    """The words of all summaries and references, if there are as many."""
    if len(hypotheses) != len(references):
        raise UserError(
            f"There are {len(hypotheses)} hypotheses, but {len(references)} references. Both need one text per "
            "summary of the same test set, in the same order."
        )
    if not hypotheses:
        raise UserError("Nothing to score: there are no summaries.")
    read = reader(marker, exceptions)
    return list(map(read, hypotheses)), list(map(read, references))


def score_pair(hypothesis: Sentences, reference: Sentences) -> dict[str, PairScore]:
    """ROUGE of one summary, from what :func:`lmfusion.scoring.words.reader` reads."""
    ours = [word for sentence in hypothesis for word in sentence]
    theirs = [word for sentence in reference for word in sentence]
    result = {}
    for order, metric in ((1, "rouge1"), (2, "rouge2")):
        our_grams, their_grams = _ngrams(ours, order), _ngrams(theirs, order)
        hits = sum((our_grams & their_grams).values())
        result[metric] = _measures(hits, sum(our_grams.values()), sum(their_grams.values()))
    result["rougeL"] = _measures(union_lcs(reference, hypothesis), len(ours), len(theirs))
    return result


def _ngrams(words: list[str], order: int) -> Counter[tuple[str, ...]]:
    """N-grams of the whole text: they do not stop at the end of a sentence."""
    return Counter(zip(*(words[start:] for start in range(order))))


def _measures(hits: int, ours: int, theirs: int) -> PairScore:
    precision, recall = _five_decimals(hits, ours), _five_decimals(hits, theirs)
    f1 = _five_decimals(precision * recall, 0.5 * precision + 0.5 * recall)
    return PairScore(precision, recall, f1)


def _five_decimals(numerator: float, denominator: float) -> float:
    return float(f"{numerator / denominator:.5f}") if denominator > 0 else 0.0


def _averages(
    per_pair: list[dict[str, PairScore]],
) -> tuple[dict[str, Measures[float]], dict[str, Measures[tuple[float, float]]], dict[str, Measures[float]]]:
    """Means, intervals and the script's averages."""
    table = np.array([[v for m in METRICS for v in (p[m].precision, p[m].recall, p[m].f1)] for p in per_pair])
    averages, low, high = perl_bootstrap.summary(perl_bootstrap.resample(table))
    return _by_metric(table.mean(axis=0).tolist()), _by_metric(list(zip(low, high))), _by_metric(averages)


def _by_metric(values: list[T]) -> dict[str, Measures[T]]:
    return {metric: Measures(*values[3 * i : 3 * i + 3]) for i, metric in enumerate(METRICS)}


def signature(marker: str | None, exceptions: Mapping[str, str], resampling: Mapping[str, Any]) -> str:
    """Everything that the numbers depend on.

    Args:
        marker: what stands between sentences; None if a text is one sentence.
        exceptions: base forms by irregular form.
        resampling: how samples for intervals or tests were drawn, as fields of the signature.
    """
    fields = {
        "like": "ROUGE-1.5.5.pl -m -a -n 2",
        "refs": 1,
        "stem": "porter-1.5.5",
        "exceptions": fingerprint(exceptions),
        "split": _SPLIT_NAMES.get(marker, marker),
        "L": "summary",
        "F": "alpha-0.5",
        **resampling,
        "version": f"lmfusion-{version('lmfusion')}",
    }
    return "|".join(["ROUGE", *(f"{key}:{value}" for key, value in fields.items())])


def marker_of(signed: str) -> str | None:
    """The sentence marker that a score with this signature was computed with.

    Raises:
        UserError: it is no signature of ROUGE, or the score needs a list of exceptions that it does not hold.
    """
    match = re.search(r"\|exceptions:(.*)\|split:(.*)\|L:summary\|", signed)
    if not match or match[1] != "none":
        raise UserError(
            f"{signed}: not the signature of ROUGE without a list of exceptions, so nothing can be scored like it."
        )
    names = {name: marker for marker, name in _SPLIT_NAMES.items()}
    return names.get(match[2], match[2])
