"""BLEU and chrF as sacreBLEU computes them (Post 2018, https://aclanthology.org/W18-6319), with their signatures.

Case-sensitive, 13a tokenization, exponential smoothing, on detokenized text: the paper's setting (its section 4.5)
and sacreBLEU's default; languages without spaces between words have a tokenization of their own.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Union

import numpy as np
import sacrebleu
from numpy.typing import NDArray
from sacrebleu.significance import estimate_ci

from lmfusion.errors import InputError
from lmfusion.scoring.bleu_metric import make_metric
from lmfusion.scoring.significance import interval, p_value
from lmfusion.scoring.streaming import StreamingBleu, StreamingChrF
from lmfusion.scoring.texts import check_texts

SEED_VARIABLE, SEED = "SACREBLEU_SEED", "12345"
"""sacreBLEU's own variable and default; "none" seeds from the system."""

References = Union[Sequence[str], Sequence[Sequence[Union[str, None]]]]
"""One reference text per sentence, or several such sequences, each as long as the hypotheses, which may have gaps."""


@dataclass(frozen=True)
class BleuScore:
    """BLEU (0..100) with what it is made of, chrF2 (0..100), and how both were computed."""

    bleu: float
    chrf: float
    signature: str
    legacy_signature: str
    """The form of sacreBLEU 1.x, which publications up to 2021 quote."""
    chrf_signature: str
    precisions: tuple[float, ...]
    """Modified 1- to 4-gram precisions, 0..100."""
    brevity_penalty: float
    hypothesis_length: int
    reference_length: int
    sentences: int

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**asdict(self), "precisions": list(self.precisions)}


@dataclass(frozen=True)
class PairedResult:
    """A system's BLEU among bootstrap samples of the test set, and whether it differs from the baseline's."""

    name: str
    bleu: float
    mean: float
    """Mean BLEU over the bootstrap samples."""
    ci: float
    """Half the width of their 95% interval: BLEU = mean ± ci."""
    p_value: float | None
    """Of the difference to the baseline; None for the baseline itself, 1 for a system that equals it."""
    signature: str
    difference_interval: tuple[float, float] | None = None
    """95% interval of the difference to the baseline among the samples; None for the baseline itself."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, ready for JSON."""
        return {**asdict(self), "difference_interval": self.difference_interval and list(self.difference_interval)}


def score(
    hypotheses: Sequence[str],
    references: References,
    test_set: str | None = None,
    language_pair: str | None = None,
    tokenizer: str | None = None,
) -> BleuScore:
    """Score detokenized sentences by corpus BLEU and chrF2.

    Args:
        hypotheses: one per sentence; an empty one counts as an empty translation.
        references: one per hypothesis, or several sequences of them, with None where a sentence has fewer.
        test_set: sacreBLEU's name of the test set (``wmt18``), only to be named in the legacy signature.
        language_pair: likewise (``en-de``); and the tokenization is the one of its target (zh, th, …; else 13a).
        tokenizer: sacreBLEU's name of another tokenization.

    Returns:
        Both scores, 0..100, with their signatures.

    Raises:
        InputError: there are no hypotheses, or a reference has another number of sentences.
    """
    streams = reference_streams(hypotheses, references)
    metric, chrf = make_metric(language_pair, tokenizer), StreamingChrF()
    result, chrf_result = metric.corpus_score(hypotheses, streams), chrf.corpus_score(hypotheses, streams)
    return BleuScore(
        bleu=result.score,
        chrf=chrf_result.score,
        signature=f"{result.name}|{metric.get_signature()}",
        legacy_signature=_legacy_signature(metric, test_set, language_pair),
        chrf_signature=f"{chrf_result.name}|{chrf.get_signature()}",
        precisions=tuple(result.precisions),
        brevity_penalty=result.bp,
        hypothesis_length=int(result.sys_len),
        reference_length=int(result.ref_len),
        sentences=len(hypotheses),
    )


def paired_bootstrap(
    baseline: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    references: References,
    samples: int = 1000,
    language_pair: str | None = None,
    tokenizer: str | None = None,
) -> list[PairedResult]:
    """Test each system against the baseline by paired bootstrap resampling (Koehn 2004), as sacreBLEU does.

    Args:
        baseline: its hypotheses, one per sentence.
        systems: the same of each other system, by name.
        references: one per sentence, or several sequences of them.
        samples: how many are drawn of the test set.
        language_pair, tokenizer: as :func:`score` takes them.

    Returns:
        The baseline (named "baseline"), then the systems in their order. The samples are the same in every run:
        sacreBLEU seeds them with 12345 unless its variable SACREBLEU_SEED says otherwise.

    Raises:
        InputError: as :func:`score`, for any of the systems; or a system is called "baseline"; or there is none.
    """
    if samples < 1:
        raise InputError(f"samples {samples}: give 1 or more, as many as are to be drawn of the test set.")
    if not systems or "baseline" in systems:
        raise InputError(f'paired_bootstrap needs one or more systems not called "baseline", but got {list(systems)}.')
    streams = reference_streams(baseline, references, "the baseline")
    for name, hypotheses in systems.items():
        reference_streams(hypotheses, references, name)
    named = {"baseline": baseline, **systems}
    return _compare(make_metric(language_pair, tokenizer), named, streams, samples)


def _compare(
    metric: StreamingBleu,
    named: Mapping[str, Sequence[str]],
    references: Sequence[Sequence[str]],
    samples: int,
) -> list[PairedResult]:
    """Compare systems with the first of them."""
    found = [_statistics(metric, hypotheses, references) for hypotheses in named.values()]
    seed = os.environ.get(SEED_VARIABLE, SEED).lower()
    resampled = _resample(metric, [counts for _, counts in found], samples, seed)
    signature = metric.get_signature()
    signature.update("seed", seed)
    signature.update("bs", samples)
    results = []
    for number, (name, (bleu, _), scores) in enumerate(zip(named, found, resampled)):
        differences = scores - resampled[0]
        p = p_value(bleu - found[0][0], differences) if number else None
        mean, ci = estimate_ci(scores)
        ends = interval(differences) if number else None
        results.append(PairedResult(name, bleu, float(mean), float(ci), p, f"BLEU|{signature}", ends))
    return results


def _statistics(
    metric: StreamingBleu, hypotheses: Sequence[str], references: Sequence[Sequence[str]]
) -> tuple[float, NDArray[np.float32]]:
    """Return a system's BLEU and, per sentence (rows), the counts it is made of."""
    counts = metric._extract_corpus_statistics(hypotheses, references)
    return metric._aggregate_and_compute(counts).score, np.array(counts, dtype=np.float32)


def _resample(
    metric: StreamingBleu, systems: Sequence[NDArray[np.float32]], samples: int, seed: str
) -> NDArray[np.float64]:
    """Return BLEU of samples of the test set (systems x samples), one sample in memory at a time.

    sacreBLEU's own test draws all samples at once, which takes 48 KB a sentence; the draws and sums are the same.
    """
    generator = np.random.default_rng(None if seed == "none" else int(seed))
    sentences = len(systems[0])
    scores = np.empty((len(systems), samples))
    for sample in range(samples):
        drawn = generator.choice(sentences, size=sentences, replace=True)
        for number, counts in enumerate(systems):
            scores[number, sample] = metric._compute_score_from_stats(counts[drawn].sum(0)).score
    return scores


def reference_streams(
    hypotheses: Sequence[str], references: References, name: str = "the system"
) -> list[Sequence[str]]:
    """Return the references as a list of one or more sequences.

    Args:
        hypotheses: one per sentence.
        references: one per sentence, or several sequences of them.
        name: of the system, for errors.

    Raises:
        InputError: there are no hypotheses or no references, or their numbers differ.
    """
    check_texts(hypotheses, name)
    if isinstance(references, str) or not isinstance(references, Sequence):
        raise InputError("The references are no list: give a list of texts, one per sentence, or several such lists.")
    if not hypotheses or not references:
        raise InputError(f"Nothing to score: {name} has {len(hypotheses)} hypotheses and {len(references)} references.")
    streams: list[Any] = [references] if isinstance(references[0], str) else list(references)
    for number, stream in enumerate(streams, start=1):
        check_texts(_without_gaps(stream), f"Reference {number}")
        if len(stream) != len(hypotheses):
            raise InputError(
                f"{name} has {len(hypotheses)} hypotheses, but reference {number} of {len(streams)} has {len(stream)} "
                "sentences. Both need one line per sentence of the same test set, in the same order."
            )
    for number, lines in enumerate(zip(*streams), start=1):
        if all(line is None for line in lines):
            raise InputError(f"Sentence {number} has no reference: give one, or leave it out of {name}, too.")
    return streams


def _without_gaps(stream: Any) -> Any:
    """Return a sequence of references with a text in the place of each None, a sentence that has none there."""
    if isinstance(stream, str) or not isinstance(stream, Sequence):
        return stream
    return ["" if text is None else text for text in stream]


def _legacy_signature(metric: StreamingBleu, test_set: str | None, language_pair: str | None) -> str:
    """Return BLEU+case.mixed+lang.L+numrefs.N+smooth.exp+test.T+tok.13a+version.V: sacreBLEU 1.x sorted its keys."""
    settings = metric.get_signature().info
    parts = {
        "case": settings["case"],
        "lang": language_pair,
        "numrefs": settings["nrefs"],
        "smooth": settings["smooth"],
        "test": test_set,
        "tok": settings["tok"],
        "version": sacrebleu.__version__,
    }
    return "+".join(["BLEU", *(f"{key}.{parts[key]}" for key in sorted(parts) if parts[key] is not None)])
