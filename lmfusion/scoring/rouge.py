"""ROUGE-1, -2 and -L (summary level; Lin 2004, https://aclanthology.org/W04-1013) of one reference per summary.

By default the figures are those that ``ROUGE-1.5.5.pl -m -a -n 2`` prints: Porter stemming, no stop word removed,
precision and recall of equal weight in F. With ``-m`` the script also replaces irregular forms by their base forms
(mice, mouse), if its data base of WordNet's exceptions has any. By default the numbers here are those that it prints
with an empty one, which is to say, with its stemmer alone; ``exceptions`` takes the list where there is one.

``like="rouge-score"`` gives the figures of the package of that name, with its stemmer, which later papers print.

Both know words of ASCII letters and digits only, so that text in another script scores 0. ``words="unicode"`` counts
words of any script, or characters where a script has no spaces, and the signature says so.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np

from lmfusion.errors import InputError
from lmfusion.scoring import perl_bootstrap, unicode_words
from lmfusion.scoring.irregular_words import fingerprint
from lmfusion.scoring.measures import Measures, PairScore
from lmfusion.scoring.texts import check_texts

HEADINGS = {"rouge1": "ROUGE-1", "rouge2": "ROUGE-2", "rougeL": "ROUGE-L"}
METRICS = tuple(HEADINGS)
PERL, PACKAGE = "ROUGE-1.5.5", "rouge-score"
LIKE = (PERL, PACKAGE)
INTERVAL = {"interval": f"95%-bootstrap-{perl_bootstrap.SAMPLES}-seeds-0-{perl_bootstrap.SAMPLES - 1}"}
_SPLIT_NAMES: dict[str | None, str] = {None: "none", "\n": "newline"}
_WORD = re.compile("[A-Za-z0-9]")
_UNICODE_FIELD = "unicode-or-character"
T = TypeVar("T")
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class RougeScore:
    """ROUGE of a test set, 0..1, and how it was computed. Keys of the dictionaries: rouge1, rouge2, rougeL."""

    per_pair: list[dict[str, PairScore]]
    means: dict[str, Measures[float]]
    intervals: dict[str, Measures[tuple[float, float]]]
    """Ends of the 95% intervals from bootstrap resampling."""
    script_averages: dict[str, Measures[float]]
    """Means over the bootstrap samples, and so a little beside the means: what the script prints as averages."""
    signature: str
    hypothesis_sentences: int
    reference_sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Return all but the single pairs, ready for JSON."""
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
    like: str = PERL,
    words: str = unicode_words.ASCII,
) -> RougeScore:
    """Score summaries against one reference each.

    Args:
        hypotheses: one text per summary; an empty one counts as 0.
        references: one text per summary.
        sentence_marker: what stands between the sentences of a text, which ROUGE-L looks at one by one; None if a
            text is one sentence.
        exceptions: base forms by irregular form, from :func:`lmfusion.scoring.irregular_words.read_exceptions`.
        like: whose figures these are to be: "ROUGE-1.5.5" or "rouge-score".
        words: "ascii", those of both, or "unicode"; :func:`lmfusion.scoring.unicode_words.kind_of` chooses.

    Returns:
        The scores of each summary and of all, 0..1, with their signature.

    Raises:
        InputError: there are no summaries, the numbers differ, the marker is empty, ``like`` or ``words`` is none of
            the two, or exceptions are given that rouge-score would not use.
    """
    per_pair = score_pairs(hypotheses, references, sentence_marker, exceptions, like, words)
    means, intervals, averages = _averages(per_pair)
    return RougeScore(
        per_pair=per_pair,
        means=means,
        intervals=intervals,
        script_averages=averages,
        signature=signature(sentence_marker, exceptions or {}, INTERVAL, like, words),
        hypothesis_sentences=_count_sentences(hypotheses, sentence_marker, words),
        reference_sentences=_count_sentences(references, sentence_marker, words),
    )


def score_pairs(
    hypotheses: Sequence[str],
    references: Sequence[str],
    sentence_marker: str | None = "\n",
    exceptions: Mapping[str, str] | None = None,
    like: str = PERL,
    words: str = unicode_words.ASCII,
) -> list[dict[str, PairScore]]:
    """Score each summary, without averages and intervals; arguments and errors are those of :func:`score`."""
    _check(hypotheses, references, sentence_marker, exceptions or {}, like, words)
    from lmfusion.scoring import rouge_scorers  # only now: NLTK takes seconds to load

    if words == unicode_words.ASCII and unicode_words.kind_of(references) != words:
        logger.warning(
            "ROUGE: most letters of the references are not Latin, and words of ASCII letters alone are counted. Words "
            'of any script count with words="unicode".'
        )
    make_scorer = partial(rouge_scorers.perl_scorer, exceptions or {}) if like == PERL else rouge_scorers.package_scorer
    scorer = make_scorer(words=words)
    return [
        scorer(*("\n".join(_sentences(text, sentence_marker)) for text in pair)) for pair in zip(hypotheses, references)
    ]


def _check(
    hypotheses: Sequence[str],
    references: Sequence[str],
    marker: str | None,
    exceptions: Mapping[str, str],
    like: str,
    words: str,
) -> None:
    if like not in LIKE:
        raise InputError(f"ROUGE can be scored like {' or '.join(LIKE)}, but not like {like}.")
    if words not in unicode_words.KINDS:
        raise InputError(f"ROUGE counts words of {' or '.join(unicode_words.KINDS)}, but not of {words!r}.")
    if like == PACKAGE and exceptions:
        raise InputError("rouge-score takes no list of exceptions. Leave the list out, or score like ROUGE-1.5.5.")
    if marker == "":
        raise InputError("The sentence marker is empty. Give the text that stands between sentences, for example <q>.")
    check_texts(hypotheses, "the system")
    check_texts(references, "the reference")
    if len(hypotheses) != len(references):
        raise InputError(
            f"There are {len(hypotheses)} hypotheses, but {len(references)} references. Both need one text per "
            "summary of the same test set, in the same order."
        )
    if not hypotheses:
        raise InputError("Nothing to score: there are no summaries.")


def _sentences(text: str, marker: str | None) -> list[str]:
    """Split a text at the marker; line feeds within a sentence become spaces."""
    parts = [text] if marker is None else text.split(marker)
    return [part.replace("\n", " ") for part in parts]


def _count_sentences(texts: Sequence[str], marker: str | None, words: str) -> int:
    """Count the sentences that have words."""
    has_word = _WORD.search if words == unicode_words.ASCII else unicode_words.has_word
    return sum(bool(has_word(sentence)) for text in texts for sentence in _sentences(text, marker))


def _averages(
    per_pair: list[dict[str, PairScore]],
) -> tuple[dict[str, Measures[float]], dict[str, Measures[tuple[float, float]]], dict[str, Measures[float]]]:
    """Return means, ends of the intervals, and means over the samples."""
    table = np.array([[v for m in METRICS for v in (p[m].precision, p[m].recall, p[m].f1)] for p in per_pair])
    averages, low, high = perl_bootstrap.summary(perl_bootstrap.resample(table))
    return _by_metric(table.mean(axis=0).tolist()), _by_metric(list(zip(low, high))), _by_metric(averages)


def _by_metric(values: list[T]) -> dict[str, Measures[T]]:
    return {metric: Measures(*values[3 * i : 3 * i + 3]) for i, metric in enumerate(METRICS)}


def signature(
    marker: str | None,
    exceptions: Mapping[str, str],
    resampling: Mapping[str, Any],
    like: str = PERL,
    words: str = unicode_words.ASCII,
) -> str:
    """Name everything that the numbers depend on.

    Args:
        marker: what stands between sentences; None if a text is one sentence.
        exceptions: base forms by irregular form.
        resampling: how samples for intervals or tests were drawn, as fields of the signature.
        like: whose figures they are: "ROUGE-1.5.5" or "rouge-score".
        words: "unicode" where the words are not those of either, which is a field of its own.

    Returns:
        Fields "name:value" with bars between them, after "ROUGE".
    """
    split, ours = _SPLIT_NAMES.get(marker, marker), f"lmfusion-{version('lmfusion')}"
    kind = {} if words == unicode_words.ASCII else {"words": _UNICODE_FIELD}
    if like == PACKAGE:
        how = {"like": like, "refs": 1, "stem": f"nltk-{version('nltk')}", **kind, "split": split, "L": "Lsum"}
        return _joined({**how, **resampling, "version": f"rouge-score-{version('rouge-score')}+{ours}"})
    how = {"like": "ROUGE-1.5.5.pl -m -a -n 2", "refs": 1, "stem": "porter-1.5.5", **kind}
    how.update(exceptions=fingerprint(exceptions), split=split, L="summary", F="alpha-0.5")
    return _joined({**how, **resampling, "version": ours})


def _joined(fields: Mapping[str, Any]) -> str:
    return "|".join(["ROUGE", *(f"{key}:{value}" for key, value in fields.items())])


def words_of(signed: str) -> str:
    """Return the words that a score with this signature was computed by: "ascii" or "unicode"."""
    return unicode_words.UNICODE if f"|words:{_UNICODE_FIELD}|" in signed else unicode_words.ASCII


def marker_of(signed: str) -> str | None:
    """Return the sentence marker that a score with this signature was computed with; None if a text is one sentence.

    Raises:
        InputError: it is no signature of ROUGE as ROUGE-1.5.5.pl has it, or the score needs a list of exceptions that
            it does not hold.
    """
    match = re.search(r"\|exceptions:(.*)\|split:(.*)\|L:summary\|", signed)
    if not match or match[1] != "none":
        raise InputError(
            f"{signed}: not the signature of ROUGE without a list of exceptions, so nothing can be scored like it."
        )
    names = {name: marker for marker, name in _SPLIT_NAMES.items()}
    return names.get(match[2], match[2])
