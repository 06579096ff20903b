"""What is no list of texts is refused by name, by BLEU and ROUGE alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sacrebleu

from lmfusion import InputError
from lmfusion.scoring import bleu, rouge

GOOD = ["the cat sat on the mat", "a dog ran to the house"]
BOTH, HYPOTHESES = (0, 1), (0,)  # references of sacreBLEU may have gaps


@pytest.mark.parametrize("score", [bleu.score, rouge.score])
@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("the cat sat", "one text|no list"),
        (iter(GOOD), "generator|iterator|no list"),
        (np.array(GOOD), "ndarray|no list"),
        ([None, "a dog ran"], "NoneType"),
        ([b"the cat sat", b"a dog ran"], "bytes"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(score: Any, bad: Any, said: str) -> None:
    for place in HYPOTHESES if score is bleu.score and isinstance(bad, list) else BOTH:
        given = [GOOD, GOOD]
        given[place] = bad
        with pytest.raises(InputError, match=said):
            score(*given)


def test_several_references_are_lists_of_texts() -> None:
    assert bleu.score(GOOD, [GOOD, GOOD]).bleu == pytest.approx(100)
    with pytest.raises(InputError, match="Reference 2"):
        bleu.score(GOOD, [GOOD, "a text"])
    with pytest.raises(InputError, match="list"):
        rouge.score(GOOD, [GOOD, GOOD])


def test_a_sentence_may_have_fewer_references_than_others_as_in_sacrebleu() -> None:
    references = [GOOD[::-1], [None, "a dog ran home to the house"]]
    found = bleu.score(GOOD, references)
    metric = sacrebleu.BLEU()
    assert found.bleu == metric.corpus_score(GOOD, references).score
    assert found.chrf == sacrebleu.CHRF().corpus_score(GOOD, references).score
    assert found.signature == f"BLEU|{metric.get_signature()}"
    assert "+numrefs.var+" in found.legacy_signature
    for gap in ([GOOD, [None, 3]], [[GOOD[0], None], [GOOD[0], None]], [GOOD[0], None], [None, None]):
        with pytest.raises(InputError, match=r"[Rr]eference"):
            bleu.score(GOOD, gap)
