"""What fairseq's decoding flags promise and did not keep: no repeated n-grams, diverse groups of any sentences."""

from __future__ import annotations

import math

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.ngram_repeat_block import NGramRepeatBlock
from fairseq.search import DiverseBeamSearch

EOS, PAD, VOCABULARY = 2, 1, 9


def banned(generated: list[int], size: int) -> set[int]:
    """By definition: the tokens after which the last `size` tokens stand in the sentence twice."""
    ngrams = {tuple(generated[i : i + size]) for i in range(len(generated) - size + 1)}
    return {t for t in range(VOCABULARY) if tuple([*generated, t][-size:]) in ngrams}


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("length", range(8))
@pytest.mark.parametrize("scripted", [False, True], ids=["python", "TorchScript"])
@pytest.mark.filterwarnings("ignore:.*torch.jit.script. is deprecated:DeprecationWarning")
def test_a_token_is_forbidden_if_it_repeats_an_ngram(size: int, length: int, scripted: bool) -> None:
    """In the buffer of fairseq's beam search: </s>, what was generated, padding up to the maximum length."""
    rows = torch.randint(4, 6, (20, length))
    tokens = torch.full((20, 12), PAD)
    tokens[:, 0], tokens[:, 1 : length + 1] = EOS, rows
    block = NGramRepeatBlock(size) if not scripted else torch.jit.script(NGramRepeatBlock(size))
    scores = block(tokens, torch.zeros(20, VOCABULARY), 4, 5, length)
    forbidden = [{t for t in range(VOCABULARY) if score[t] == -math.inf} for score in scores]
    assert forbidden == [banned(row, size) for row in rows.tolist()]
    assert any(forbidden) == (length >= size)


def test_diverse_groups_do_not_depend_on_the_sentences_numbers() -> None:
    """Three sentences of a data set, the second of which finishes first, and the same as places 0, 1, 2."""
    scores = {}
    for name, ids in (("numbers", [71, 4, 0]), ("places", [0, 1, 2])):
        search = DiverseBeamSearch(Dictionary(), num_groups=2, diversity_strength=0.5)
        left, found, before = torch.tensor(ids), [], torch.zeros(3, 4, 0)
        torch.manual_seed(1)
        for step in range(4):
            lprobs = torch.randn(3, 4, VOCABULARY).log_softmax(-1)[: len(left)]
            found.append(search.step(step, lprobs, before, None, left)[0])
            before = torch.cat([before, found[-1][:, :4, None]], dim=2)
            if step == 1:
                left, before = left[[0, 2]], before[[0, 2]]
        scores[name] = found
    assert all(torch.equal(one, other) for one, other in zip(*scores.values()))
