"""What the Python object for models with heads says of texts, against the heads' logits one text at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from lmfusion.errors import InputError
from lmfusion.inference.predicting import Predictor, load_heads
from lmfusion.text.labelled import Example

PATH = Path("new.tsv")
SINGLE = ["w1 w2", "w3", "w4 w5 w6 w7 w8", "w9 w10 w11", "w2"]
PAIRS = [("w1 w2", "w3"), ("w4", "w5 w6 w7 w8"), ("w9", "w9")]


def ids(text: str) -> list[int]:
    """Of w0 w1 ...: the dictionary's first four symbols are special."""
    return [4 + int(word[1:]) for word in text.split()]


def examples(texts: Any, label: str | None = None) -> list[Example]:
    return [Example(n, (text,) if isinstance(text, str) else text, label) for n, text in enumerate(texts, start=1)]


@pytest.mark.parametrize("size", [1, 2, 64])
@torch.no_grad()
def test_classes_and_their_probabilities(make_heads: Any, size: int) -> None:
    model = make_heads()
    found = list(Predictor(model).predict(model.specs[0], examples(SINGLE), PATH, size=size))
    for text, each in zip(SINGLE, found, strict=True):
        (logits,) = model("mood", [torch.tensor([[0, *ids(text), 2]])]).tolist()
        expected = torch.tensor(logits).double().exp()
        assert each.values == pytest.approx((expected / expected.sum()).tolist(), abs=1e-5)
        assert each.label == ("bad", "fair", "good")[logits.index(max(logits))]


@torch.no_grad()
def test_yes_or_no_of_a_pair_in_one_row(make_heads: Any) -> None:
    model = make_heads()
    found = list(Predictor(model).predict(model.specs[1], examples(PAIRS), PATH, size=2))
    for (first, second), each in zip(PAIRS, found, strict=True):
        yes = model("same", [torch.tensor([[0, *ids(first), 2, *ids(second), 2]])]).sigmoid().item()
        assert each.values == pytest.approx((1 - yes, yes), abs=1e-5)
        assert each.label == str(int(yes > 0.5))


@torch.no_grad()
def test_a_score_of_a_pair_in_two_rows(make_heads: Any) -> None:
    model = make_heads()
    found = list(Predictor(model).predict(model.specs[2], examples(PAIRS), PATH, size=2))
    for pair, each in zip(PAIRS, found, strict=True):
        logit = model("near", [torch.tensor([[0, *ids(text), 2]]) for text in pair])
        (value,) = each.values
        assert value == pytest.approx(5 * logit.sigmoid().item(), abs=1e-5)
        assert each.label == f"{value:.4f}"


@pytest.mark.parametrize("label", [None, "no tag of the model's"])
@torch.no_grad()
def test_tags_of_words_whatever_is_given_as_label(make_heads: Any, label: str | None) -> None:
    """In batches of unequal lengths; a word has the tag of its place, without the frame's and the padding's."""
    model = make_heads()
    found = list(Predictor(model).predict(model.specs[3], examples(SINGLE, label), PATH, size=3))
    for text, each in zip(SINGLE, found, strict=True):
        chances = model("words", [torch.tensor([[0, *ids(text), 2]])])[0, 1:-1].softmax(-1)
        assert each.label.split() == ["NV"[row[1] > row[0]] for row in chances.tolist()]
        assert each.values == pytest.approx([max(row) for row in chances.tolist()], abs=1e-5)


def test_no_text_has_no_prediction(make_heads: Any) -> None:
    model = make_heads()
    assert list(Predictor(model).predict(model.specs[0], [], PATH)) == []


def test_a_text_that_is_too_long_is_cut_where_it_is_wanted(make_heads: Any) -> None:
    """30 positions are for 28 symbols and the frame."""
    model = make_heads()
    fits, longer = ("w1 " * number for number in (28, 29))
    predictor, spec = Predictor(model), model.specs[0]
    with pytest.raises(InputError, match=r"new\.tsv, line 2"):
        list(predictor.predict(spec, examples([fits, longer]), PATH))
    one, other = predictor.predict(spec, examples([fits, longer]), PATH, truncate=True)
    assert one == other


def test_a_head_is_named_where_there_are_several(make_heads: Any) -> None:
    model = make_heads()
    several, alone = Predictor(model), Predictor(make_heads(model.specs[:1]))
    assert several.head("near").kind == "score"
    assert alone.head() == alone.head("mood") == model.specs[0]
    for predictor, name in ((several, None), (several, "moods"), (alone, "near")):
        with pytest.raises(InputError, match="--task mood"):
            predictor.head(name)


def test_a_language_model_has_no_heads(make_causal: Any, save_lm: Any) -> None:
    path = save_lm(make_causal())
    with pytest.raises(InputError, match=r"lm\.pt .*lmfusion_sentences"):
        load_heads(path)
