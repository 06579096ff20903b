"""ROUGE-1, -2 and -L of one summary and its reference: rouge-score's own figures, or those of ROUGE-1.5.5.pl.

Between the two are the words (see :mod:`lmfusion.scoring.perl_words`) and the script's rounding before it goes on. The
package's summary-level L is the script's, but slow; here it is spared the words that match nothing.

Importing this loads NLTK, which takes seconds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache, partial
from types import SimpleNamespace

from nltk.stem.porter import PorterStemmer
from rouge_score.rouge_scorer import RougeScorer, lcs_ind
from rouge_score.tokenize import tokenize

from lmfusion.scoring.measures import Measures, PairScore, Scorer
from lmfusion.scoring.perl_words import PerlTokenizer
from lmfusion.scoring.unicode_words import ASCII, UnicodeTokenizer


def package_scorer(words: str = ASCII) -> Scorer:
    """Return rouge-score's own scorer, with its stemmer, and its rougeLsum as rougeL.

    Args:
        words: "ascii" for its own words, or "unicode" (:mod:`lmfusion.scoring.unicode_words`).
    """
    # What RougeScorer(…, use_stemmer=True) makes for itself, but that stems every word only once.
    stemmer = SimpleNamespace(stem=lru_cache(maxsize=1 << 18)(PorterStemmer().stem))
    own = SimpleNamespace(tokenize=partial(tokenize, stemmer=stemmer))
    tokenizer = own if words == ASCII else UnicodeTokenizer(lambda word: " ".join(own.tokenize(word)))
    scorer = RougeScorer(["rouge1", "rouge2", "rougeLsum"], tokenizer=tokenizer)

    def score(hypothesis: str, reference: str) -> dict[str, PairScore]:
        found = scorer.score(reference, hypothesis)
        return {metric.removesuffix("sum"): Measures(*map(float, values)) for metric, values in found.items()}

    return score


def perl_scorer(exceptions: Mapping[str, str], words: str = ASCII) -> Scorer:
    """Return a scorer with the figures of ``ROUGE-1.5.5.pl -m -a -n 2``.

    Args:
        exceptions: base forms by irregular form, for words that are not to be stemmed.
        words: "ascii" for the script's own words, or "unicode" (:mod:`lmfusion.scoring.unicode_words`).
    """
    own = PerlTokenizer(exceptions)
    tokenizer = own if words == ASCII else UnicodeTokenizer(own.normalize)
    scorer = RougeScorer(["rouge1", "rouge2"], tokenizer=tokenizer)

    def score(hypothesis: str, reference: str) -> dict[str, PairScore]:
        ngrams = scorer.score(reference, hypothesis)
        ours, theirs = ([tokenizer.tokenize(line) for line in text.split("\n")] for text in (hypothesis, reference))
        hits = union_lcs(theirs, ours)
        precision, recall = (hits / max(sum(map(len, sentences)), 1) for sentences in (ours, theirs))
        return {
            **{metric: _perl_measures(values.precision, values.recall) for metric, values in ngrams.items()},
            "rougeL": _perl_measures(precision, recall),
        }

    return score


def union_lcs(reference: Sequence[Sequence[str]], hypothesis: Sequence[Sequence[str]]) -> int:
    """Count the words of the reference that summary-level ROUGE-L finds in the hypothesis (Lin 2004, section 3.2).

    Args:
        reference: the words of each of its sentences.
        hypothesis: likewise.

    Returns:
        Of each reference sentence, the words that are in its longest common subsequence with any hypothesis sentence;
        but no word more often than the whole hypothesis has it (ROUGE-1.4.1 and later).
    """
    available = Counter(word for sentence in hypothesis for word in sentence)
    others = [(sentence, set(sentence)) for sentence in hypothesis]
    hits = 0
    for sentence in reference:
        marked: set[int] = set()
        for other, known in others:
            # The package takes the time of len(sentence) * len(other). Of several subsequences of the same length it
            # finds the same one without the reference's words that match nothing; the hypothesis has to stay whole.
            positions = [position for position, word in enumerate(sentence) if word in known]
            marked.update(positions[index] for index in lcs_ind([sentence[p] for p in positions], other))
        for position in sorted(marked):
            if available[sentence[position]] > 0:
                available[sentence[position]] -= 1
                hits += 1
    return hits


def _perl_measures(precision: float, recall: float) -> PairScore:
    """Round as the script does, which goes on with the rounded figures."""
    precision, recall = _five_decimals(precision), _five_decimals(recall)
    total = 0.5 * precision + 0.5 * recall
    return Measures(precision, recall, _five_decimals(precision * recall / total) if total else 0.0)


def _five_decimals(value: float) -> float:
    """Round as ``sprintf("%.5f")`` does."""
    return float(f"{value:.5f}")
