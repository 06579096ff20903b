"""The two scorers beside the rouge-score package itself, and the union of longest common subsequences."""

from __future__ import annotations

import itertools
import json
import random
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from rouge_score.rouge_scorer import RougeScorer

from lmfusion.errors import InputError
from lmfusion.scoring import rouge
from lmfusion.scoring.rouge_scorers import union_lcs
from lmfusion.scoring.rouge_significance import paired_bootstrap

PAIRS = json.loads((Path(__file__).parent / "rouge-1.5.5" / "rouge_descriptions.json").read_text("utf-8"))["pairs"]
HYPOTHESES, REFERENCES = ([pair[side] for pair in PAIRS] for side in ("hypothesis", "reference"))
PACKAGE = ["rouge1", "rouge2", "rougeLsum"]


@pytest.mark.parametrize("marker", ["\n", " <q> ", None])
def test_like_rouge_score_the_figures_are_the_packages_own(marker: str | None) -> None:
    """Written as its users do: one sentence per line, its stemmer, the mean of what it gives for each summary."""
    lines = [
        [text.replace("\n", " ") if marker is None else text for text in side] for side in (HYPOTHESES, REFERENCES)
    ]
    scorer = RougeScorer(PACKAGE, use_stemmer=True)
    expected = [scorer.score(reference, hypothesis) for hypothesis, reference in zip(*lines)]
    given = [[text.replace("\n", marker or "\n") for text in side] for side in (HYPOTHESES, REFERENCES)]
    ours = rouge.score(*given, sentence_marker=marker, like="rouge-score")
    for metric, name in zip(rouge.METRICS, PACKAGE):
        theirs = np.array([list(pair[name]) for pair in expected])
        assert [[p[metric].precision, p[metric].recall, p[metric].f1] for p in ours.per_pair] == theirs.tolist()
        means = ours.means[metric]
        assert [means.precision, means.recall, means.f1] == pytest.approx(theirs.mean(axis=0).tolist(), abs=1e-12)
        low, high = ours.intervals[metric].f1
        assert low < means.f1 < high


def test_the_two_differ_and_their_signatures_say_so() -> None:
    """The script's stem of "fundamental" is "fundam", the package's "fundament"."""
    score = {like: rouge.score(["fundamental facts"], ["fundam fact"], like=like) for like in rouge.LIKE}
    assert [score[like].means["rouge1"].f1 for like in rouge.LIKE] == [1.0, 0.5]
    assert score["ROUGE-1.5.5"] == rouge.score(["fundamental facts"], ["fundam fact"])
    fields = dict(field.split(":", 1) for field in score["rouge-score"].signature.split("|")[1:])
    assert fields["like"] == "rouge-score"
    assert fields["L"] == "Lsum"
    assert fields["stem"] == f"nltk-{version('nltk')}"
    assert fields["version"].startswith(f"rouge-score-{version('rouge-score')}+lmfusion-")


def test_nothing_is_scored_by_the_script_after_a_signature_of_the_package() -> None:
    with pytest.raises(InputError, match="like:rouge-score"):
        rouge.marker_of(rouge.score(["a"], ["a"], like="rouge-score").signature)


def test_unknown_ways_and_exceptions_that_the_package_does_not_take_are_refused() -> None:
    with pytest.raises(InputError, match="pyrouge"):
        rouge.score(["a"], ["a"], like="pyrouge")
    with pytest.raises(InputError, match="no list of exceptions"):
        rouge.score(["a"], ["a"], exceptions={"mice": "mouse"}, like="rouge-score")


def test_the_paired_test_is_of_the_figures_asked_for() -> None:
    results = paired_bootstrap(HYPOTHESES, {"x": REFERENCES[:1] + HYPOTHESES[1:]}, REFERENCES, like="rouge-score")
    score = rouge.score(HYPOTHESES, REFERENCES, like="rouge-score")
    assert [r.f1 for r in results[:3]] == pytest.approx([100 * score.means[m].f1 for m in rouge.METRICS], abs=1e-9)
    assert "|like:rouge-score|" in results[0].signature


def test_scoring_loads_neither_torch_nor_nltk_before_it_needs_them() -> None:
    heavy = "torch fairseq nltk rouge_score sklearn pandas".split()
    code = f"import sys, lmfusion.scoring; print(*sorted(sys.modules.keys() & {set(heavy)}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == []
    code = "import sys, lmfusion.scoring; lmfusion.scoring.rouge.score(['a'], ['a']); "
    code += "print(*sorted(sys.modules.keys() & {'torch', 'fairseq', 'rouge_score'}))"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["rouge_score"]


def sentence(generator: random.Random) -> list[str]:
    return generator.choices("abcd", k=generator.randint(0, 7))


def text(generator: random.Random) -> list[list[str]]:
    return [sentence(generator) for _ in range(generator.randint(0, 4))]


def positions(reference: list[str], hypothesis: list[str]) -> list[int]:
    """Walk back through the table of lengths as the script does: up, unless that would be shorter."""

    def length(rows: int, columns: int) -> int:
        if not rows or not columns:
            return 0
        if reference[rows - 1] == hypothesis[columns - 1]:
            return lengths[rows - 1, columns - 1] + 1
        return max(lengths[rows - 1, columns], lengths[rows, columns - 1])

    lengths: dict[tuple[int, int], int] = {}
    for cell in itertools.product(range(len(reference) + 1), range(len(hypothesis) + 1)):
        lengths[cell] = length(*cell)
    row, column, found = len(reference), len(hypothesis), []
    while row and column:
        if reference[row - 1] == hypothesis[column - 1]:
            row, column = row - 1, column - 1
            found.append(row)
        elif lengths[row - 1, column] >= lengths[row, column - 1]:
            row -= 1
        else:
            column -= 1
    return found


def test_union_takes_of_several_subsequences_the_one_that_the_script_takes() -> None:
    generator = random.Random(1)
    for _ in range(2000):
        reference, hypothesis = text(generator), text(generator)
        left = [word for other in hypothesis for word in other]
        hits = 0
        for ours in reference:
            for position in sorted({position for other in hypothesis for position in positions(ours, other)}):
                if ours[position] in left:
                    left.remove(ours[position])
                    hits += 1
        assert union_lcs(reference, hypothesis) == hits


def test_union_of_the_published_example() -> None:
    # Lin 2004, section 3.2: r = w1 w2 w3 w4 w5; c1 = w1 w2 w6 w7 w8, c2 = w1 w3 w8 w9 w5; union w1 w2 w3 w5.
    reference = ["w1 w2 w3 w4 w5".split()]
    assert union_lcs(reference, ["w1 w2 w6 w7 w8".split(), "w1 w3 w8 w9 w5".split()]) == 4


def test_a_text_is_found_in_itself_whole() -> None:
    words = ["a b a".split(), "b".split(), "c a a".split()]
    assert union_lcs(words, words) == 7
    assert union_lcs(words, words[::-1]) == 7
