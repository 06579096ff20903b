"""The paired bootstrap of ROUGE: sacreBLEU's test, on the F1 of each summary."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from sacrebleu import significance

from lmfusion.errors import InputError
from lmfusion.scoring import rouge
from lmfusion.scoring.rouge_significance import PairedRouge, paired_bootstrap

PAIRS = json.loads((Path(__file__).parent / "rouge-1.5.5" / "rouge_descriptions.json").read_text("utf-8"))["pairs"]
REFERENCES = [pair["reference"] for pair in PAIRS]
BASELINE = [pair["hypothesis"] for pair in PAIRS]
BETTER = [reference if i % 4 == 0 else text for i, (text, reference) in enumerate(zip(BASELINE, REFERENCES))]
HARDLY = [reference if i == 5 else text for i, (text, reference) in enumerate(zip(BASELINE, REFERENCES))]


class MeanF1:
    """A metric as sacreBLEU's test wants it: the mean of the summaries' F1 in one of ROUGE's metrics."""

    def __init__(self, metric: str) -> None:
        self.metric = metric

    def _extract_corpus_statistics(self, texts: Sequence[str], _: object) -> list[list[float]]:
        return [[100 * pair[self.metric].f1, 1] for pair in rouge.score(texts, REFERENCES).per_pair]

    def _compute_score_from_stats(self, stats: Sequence[float]) -> SimpleNamespace:
        return SimpleNamespace(score=stats[0] / stats[1])

    def _aggregate_and_compute(self, stats: list[list[float]]) -> SimpleNamespace:
        return self._compute_score_from_stats(np.sum(stats, axis=0))


@pytest.mark.parametrize("texts", [BETTER, HARDLY], ids=["better", "hardly better"])
@pytest.mark.parametrize("metric", rouge.METRICS)
def test_equals_sacrebleus_test_of_the_same_figures(metric: str, texts: list[str]) -> None:
    ours = next(r for r in paired_bootstrap(BASELINE, {"x": texts}, REFERENCES)[3:] if r.metric == metric)
    judge = MeanF1(metric)
    stats = judge._extract_corpus_statistics(BASELINE, None)
    info = {"F1": (stats, judge._aggregate_and_compute(stats))}
    _, theirs = significance._paired_bs_test(info, "x", texts, None, {"F1": judge}, 1000, seed=12345)
    assert ours.p_value == theirs["F1"].p_value
    assert (ours.f1, ours.mean, ours.ci) == pytest.approx(
        (theirs["F1"].score, theirs["F1"].mean, theirs["F1"].ci), abs=1e-4
    )


def test_a_large_difference_is_significant_and_a_single_summary_is_not() -> None:
    results = paired_bootstrap(BASELINE, {"better": BETTER, "hardly": HARDLY, "copy": BASELINE}, REFERENCES)
    assert [(r.name, r.metric) for r in results] == [
        (name, metric) for name in ("baseline", "better", "hardly", "copy") for metric in rouge.METRICS
    ]
    by_name = {r.name: r for r in results if r.metric == "rouge1"}
    p_values = {name: r.p_value for name, r in by_name.items()}
    assert p_values["baseline"] is None
    assert p_values["better"] < 0.01 < 0.05 < p_values["hardly"]
    assert p_values["copy"] == 1
    assert by_name["better"].f1 > by_name["baseline"].f1 == by_name["copy"].f1


def test_its_figures_are_those_of_the_score_and_its_signature_says_how_samples_were_drawn() -> None:
    results: list[PairedRouge] = paired_bootstrap(BASELINE, {"x": BETTER}, REFERENCES, sentence_marker=None)
    score = rouge.score(BETTER, REFERENCES, sentence_marker=None)
    assert [r.f1 for r in results[3:]] == pytest.approx([100 * score.means[m].f1 for m in rouge.METRICS], abs=1e-9)
    assert "|split:none|L:summary|F:alpha-0.5|bs:1000|seed:12345|version:" in results[0].signature
    assert "interval" not in results[0].signature


@pytest.mark.parametrize("marker", [None, "\n", "<q>", "|", "split:none"])
def test_a_score_says_by_its_signature_how_to_score_others_like_it(marker: str | None) -> None:
    assert rouge.marker_of(rouge.score(BASELINE, REFERENCES, marker).signature) == marker


def test_a_score_with_a_list_of_exceptions_cannot_be_had_again_from_its_signature() -> None:
    signature = rouge.score(BASELINE, REFERENCES, exceptions={"mice": "mouse"}).signature
    for text in (signature, "BLEU|nrefs:1|case:mixed"):
        with pytest.raises(InputError, match="signature of ROUGE without a list of exceptions"):
            rouge.marker_of(text)


@pytest.mark.parametrize("systems", [{}, {"baseline": BETTER}])
def test_refuses_what_it_cannot_name(systems: dict[str, list[str]]) -> None:
    with pytest.raises(InputError, match='one or more systems not called "baseline"'):
        paired_bootstrap(BASELINE, systems, REFERENCES)


def test_the_interval_of_the_difference_is_that_of_the_samples() -> None:
    """By a second way: F1 of each summary, and the draws that the signature names."""
    base, _, _, rival, *_ = paired_bootstrap(BASELINE, {"x": BETTER}, REFERENCES, sentence_marker=None)
    assert base.difference_interval is None
    f1 = [
        np.array([pair["rouge1"].f1 for pair in rouge.score_pairs(texts, REFERENCES, None)])
        for texts in (BETTER, BASELINE)
    ]
    draws = np.random.default_rng(12345).choice(len(REFERENCES), size=(1000, len(REFERENCES)))
    sampled = sorted(100 * (f1[0] - f1[1])[drawn].mean() for drawn in draws)
    assert rival.difference_interval == pytest.approx((sampled[25], sampled[974]))
