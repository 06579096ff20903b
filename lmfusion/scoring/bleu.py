"""BLEU and chrF as sacreBLEU computes them (Post 2018, https://aclanthology.org/W18-6319), with their signatures.

Case-sensitive, 13a tokenization, exponential smoothing, on detokenized text: the paper's setting (its section 4.5)
and sacreBLEU's default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Union

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from lmfusion.errors import UserError

References = Union[Sequence[str], Sequence[Sequence[str]]]
"""One reference text per sentence, or several such sequences, each as long as the hypotheses."""


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
        """All fields, ready for JSON."""
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

    def to_dict(self) -> dict[str, Any]:
        """All fields, ready for JSON."""
        return asdict(self)


def score(
    hypotheses: Sequence[str],
    references: References,
    test_set: str | None = None,
    language_pair: str | None = None,
) -> BleuScore:
    """Corpus BLEU and chrF2 of detokenized sentences.

    Args:
        hypotheses: one per sentence; an empty one counts as an empty translation.
        references: one per hypothesis, or several sequences of them.
        test_set: sacreBLEU's name of the test set (``wmt18``), only to be named in the legacy signature.
        language_pair: likewise (``en-de``); and where its target is zh, ja or ko, sacreBLEU's tokenization for it.

    Raises:
        UserError: there are no hypotheses, or a reference has another number of sentences.
    """
    streams = reference_streams(hypotheses, references)
    metric, chrf = _metric(language_pair), CHRF()
    result, chrf_result = metric.corpus_score(hypotheses, streams), chrf.corpus_score(hypotheses, streams)
    return BleuScore(
        bleu=result.score,
        chrf=chrf_result.score,
        signature=f"{result.name}|{metric.get_signature()}",
        legacy_signature=_legacy_signature(metric, len(streams), test_set, language_pair),
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
) -> list[PairedResult]:
    """Paired bootstrap resampling (Koehn 2004) of each system against the baseline, as sacreBLEU's ``--paired-bs``.

    Returns:
        The baseline (named "baseline"), then the systems in their order. The samples are the same in every run:
        sacreBLEU seeds them with 12345 unless its variable SACREBLEU_SEED says otherwise.

    Raises:
        UserError: as :func:`score`, for any of the systems; or a system is called "baseline"; or there is none.
    """
    if not systems or "baseline" in systems:
        raise UserError(f'paired_bootstrap needs one or more systems not called "baseline", but got {list(systems)}.')
    streams = reference_streams(baseline, references, "the baseline")
    for name, hypotheses in systems.items():
        reference_streams(hypotheses, references, name)
    named = [("baseline", baseline), *systems.items()]
    metrics = {"BLEU": _metric(language_pair, streams)}
    test = PairedTest(named, metrics, references=None, test_type="bs", n_samples=samples)
    signatures, scores = test()
    signature = f"BLEU|{signatures['BLEU']}"
    return [
        _paired_result(name, result, signature, is_copy=list(hypotheses) == list(baseline))
        for (name, hypotheses), result in zip(named, scores["BLEU"])
    ]


def _metric(language_pair: str | None, streams: Sequence[Sequence[str]] | None = None) -> BLEU:
    """sacreBLEU's metric as its command sets it up for a language pair."""
    target = language_pair.partition("-")[2] if language_pair else ""
    try:
        return BLEU(trg_lang=target, references=streams)
    except RuntimeError as error:  # it has no tokenizer for Japanese or Korean without its extras
        raise UserError(f"sacreBLEU needs its extra for this language: pip install 'sacrebleu[{target}]'") from error


def _paired_result(name: str, result: Any, signature: str, is_copy: bool) -> PairedResult:
    """sacreBLEU's result, but for a copy of the baseline: no sample differs, and its test calls that significant."""
    p_value = 1.0 if is_copy and result.p_value is not None else result.p_value
    return PairedResult(name, result.score, float(result.mean), float(result.ci), p_value, signature)


def reference_streams(
    hypotheses: Sequence[str], references: References, name: str = "the system"
) -> list[Sequence[str]]:
    """The references as a list of one or more sequences, each of which has as many sentences as the hypotheses.

    Raises:
        UserError: there are no hypotheses or no references, or their numbers differ.
    """
    if not hypotheses or not references:
        raise UserError(f"Nothing to score: {name} has {len(hypotheses)} hypotheses and {len(references)} references.")
    streams: list[Any] = [references] if isinstance(references[0], str) else list(references)
    for number, stream in enumerate(streams, start=1):
        if len(stream) != len(hypotheses):
            raise UserError(
                f"{name} has {len(hypotheses)} hypotheses, but reference {number} of {len(streams)} has {len(stream)} "
                "sentences. Both need one line per sentence of the same test set, in the same order."
            )
    return streams


def _legacy_signature(metric: BLEU, references: int, test_set: str | None, language_pair: str | None) -> str:
    """BLEU+case.mixed+lang.L+numrefs.N+smooth.exp+test.T+tok.13a+version.V: sacreBLEU 1.x sorted its keys."""
    settings = metric.get_signature().info
    parts = {
        "case": settings["case"],
        "lang": language_pair,
        "numrefs": references,
        "smooth": settings["smooth"],
        "test": test_set,
        "tok": settings["tok"],
        "version": sacrebleu.__version__,
    }
    return "+".join(["BLEU", *(f"{key}.{parts[key]}" for key in sorted(parts) if parts[key] is not None)])
