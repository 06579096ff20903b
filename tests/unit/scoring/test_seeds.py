"""The bootstrap over sentences and seeds, compared with sacreBLEU itself on every sample."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import sacrebleu

import lmfusion
from lmfusion import cli
from lmfusion.scoring.seeds import Row, SeedsResult, compare

REFERENCES = [
    "the cat sat on the mat .",
    "a small tool for the network",
    "he reads a book today",
    "see the files below",
]


def made(seed: int, wrong: float) -> list[str]:
    """Hypotheses that differ from the references in some of the words."""
    rng = np.random.default_rng(seed)
    return [" ".join(word if rng.random() > wrong else "x" for word in line.split()) for line in REFERENCES]


SYSTEM, BASELINE = [made(seed, 0.1) for seed in (1, 2, 3)], [made(seed, 0.3) for seed in (4, 5)]


@pytest.mark.parametrize("metric", ["BLEU", "chrF2"])
def test_the_interval_is_that_of_scoring_each_sample_as_a_test_set(metric: str) -> None:
    score = sacrebleu.corpus_bleu if metric == "BLEU" else sacrebleu.corpus_chrf
    rng = np.random.default_rng(12345)
    differences = []
    for _ in range(80):
        seeds = [rng.choice(len(row), size=len(row)) for row in (SYSTEM, BASELINE)]
        lines = rng.choice(len(REFERENCES), size=len(REFERENCES))
        references = [[REFERENCES[line] for line in lines]]
        means = [
            np.mean([score([row[seed][line] for line in lines], references).score for seed in drawn])
            for row, drawn in zip((SYSTEM, BASELINE), seeds)
        ]
        differences.append(means[0] - means[1])
    (found,) = (each for each in compare(SYSTEM, BASELINE, REFERENCES, samples=80) if each.metric == metric)
    expected = sorted(differences)
    assert found.interval == pytest.approx((expected[2], expected[-3]), abs=1e-3)
    scores = [score(each, [REFERENCES]).score for each in SYSTEM]
    assert found.system.scores == pytest.approx(scores, abs=1e-3)
    assert found.system.deviation == pytest.approx(np.std(scores, ddof=1), abs=1e-3)
    assert found.difference == pytest.approx(np.mean(scores) - np.mean(found.baseline.scores), abs=1e-3)


def test_a_deviation_is_told_from_three_seeds_on() -> None:
    found = compare(SYSTEM, BASELINE, REFERENCES, samples=10)[0]
    assert found.baseline.deviation is None
    assert "±" in found.system.shown()
    assert "±" not in found.baseline.shown()


def test_seeds_that_differ_among_themselves_widen_the_interval() -> None:
    alike = [[*REFERENCES[:3], "x"]] * 3
    apart = [[*REFERENCES[:3], "x"], ["x", *REFERENCES[1:]], ["x y", "y", *REFERENCES[2:]]]
    narrow, wide = (compare(row, alike, REFERENCES)[1].interval for row in (alike, apart))
    assert narrow == (0, 0)
    assert wide[1] - wide[0] > 1


@pytest.mark.parametrize(
    ("interval", "beyond"), [((0.5, 2.0), True), ((-2.0, -0.5), True), ((-0.5, 2.0), False), ((0.0, 2.0), False)]
)
def test_a_difference_is_beyond_chance_to_either_side_of_0(interval: tuple[float, float], beyond: bool) -> None:
    difference = sum(interval) / 2
    found = SeedsResult("BLEU", Row((20.0 + difference,)), Row((20.0,)), difference, interval, "BLEU")
    assert found.is_beyond_chance is beyond
    assert found.to_dict()["beyond_chance"] is beyond


def test_files_by_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, lines in {"ref": REFERENCES, **{f"s{n}": row for n, row in enumerate([*SYSTEM, *BASELINE])}}.items():
        (tmp_path / name).write_text("\n".join([*lines, ""]), encoding="utf-8")
    files = [str(tmp_path / f"s{number}") for number in range(5)]
    words = ["score", "seeds", "--hyp", *files[:3], "--baseline", *files[3:], "--ref", str(tmp_path / "ref")]
    cli.main([*words, "--json"])
    bleu, chrf = json.loads(capsys.readouterr().out)
    assert [bleu["metric"], chrf["metric"]] == ["BLEU", "chrF2"]
    assert bleu["interval"] == list(compare(SYSTEM, BASELINE, REFERENCES)[0].interval)
    cli.main(words)
    assert "95% interval" in capsys.readouterr().out


def test_rows_of_other_lengths_are_refused() -> None:
    with pytest.raises(lmfusion.InputError, match="the baseline, file 2, has 3"):
        compare(SYSTEM, [BASELINE[0], BASELINE[1][:3]], REFERENCES)
    with pytest.raises(lmfusion.InputError, match="the baseline has no"):
        compare(SYSTEM, [], REFERENCES)
