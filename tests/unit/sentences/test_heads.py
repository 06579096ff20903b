"""Heads: shapes, ways of treating a pair, losses, what is frozen and what a checkpoint refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from lmfusion.consumers.heads import IGNORED, PAIRS, Head, HeadSpec, joined
from lmfusion.errors import InputError
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.pooling import first_state

A, B = torch.tensor([[0, 5, 9, 4, 2], [0, 7, 2, 1, 1]]), torch.tensor([[0, 8, 2], [0, 6, 2]])


def test_pairs_are_joined_as_the_documents_say() -> None:
    u, v = torch.tensor([[1.0, -2.0]]), torch.tensor([[3.0, 4.0]])
    assert joined([u, v], "uv").tolist() == [[1, -2, 3, 4]]
    assert joined([u, v], "uv_diff").tolist() == [[1, -2, 3, 4, 2, 6]]
    assert joined([u, v], "uv_diff_prod").tolist() == [[1, -2, 3, 4, 2, 6, 3, -8]]
    assert joined([u], "concat").tolist() == [[1, -2]]


@torch.no_grad()
@pytest.mark.parametrize("dropout", [0.0, 0.5])
def test_heads_drop_out_what_they_read_in_training_alone(make_heads: Any, dropout: float) -> None:
    model = make_heads(head_dropout=dropout)
    assert torch.equal(model("mood", [A]), model("mood", [A]))
    model.train()
    assert torch.equal(model("mood", [A]), model("mood", [A])) == (dropout == 0)


@torch.no_grad()
def test_logits_have_the_shape_of_their_kind(make_heads: Any) -> None:
    model = make_heads()
    assert model("mood", [A]).shape == (2, 3)
    assert model("same", [A]).shape == (2,)
    assert model("near", [A, B]).shape == (2,)
    assert model("words", [A]).shape == (2, 5, 2)


@pytest.mark.parametrize("fusion", ["elmo", "finetune"])
@pytest.mark.parametrize("pool", ["family", "mean", "first", "last"])
@torch.no_grad()
def test_an_example_is_the_same_alone_and_in_a_batch(make_heads: Any, fusion: str, pool: str) -> None:
    model = make_heads(src_fusion=fusion, pool=pool)
    together = model("mood", [A])
    torch.testing.assert_close(model("mood", [A[1:, :3]]), together[1:], rtol=0, atol=2e-6)


@torch.no_grad()
def test_cosine_alone_is_the_same_both_ways_round(make_heads: Any) -> None:
    specs = [HeadSpec(name, "score", name) for name in PAIRS if name != "concat"]
    model = make_heads(specs)
    for spec in specs:
        equal = torch.equal(model(spec.name, [A, B]), model(spec.name, [B, A]))
        assert equal == (spec.pair == "cos"), spec.name
    vectors = [torch.tanh(model.lm.pooler(first_state(model.lm.top_state(rows), rows.eq(1)))) for rows in (A, B)]
    scale, shift = model.heads["cos"].affine
    u, v = vectors
    expected = scale * (u * v).sum(1) / (u.norm(dim=1) * v.norm(dim=1)) + shift
    torch.testing.assert_close(model("cos", [A, B]), expected)


def test_losses_are_those_of_their_formulas() -> None:
    def loss(spec: HeadSpec, logits: Any, target: Any) -> float:
        return float(Head(spec, 4, 0.0).loss(torch.tensor(logits), torch.tensor(target)))

    three = [[1.0, 2.0, 0.0]]
    total = sum(torch.tensor(three[0]).double().exp())
    assert loss(HeadSpec("a", "class", None, ("x", "y", "z")), three, [1]) == pytest.approx(float(total.log()) - 2)
    assert loss(HeadSpec("a", "binary", "uv", ("0", "1")), [0.0, 0.0], [1.0, 0.0]) == pytest.approx(0.693147, abs=1e-6)
    assert loss(HeadSpec("a", "score", "cos"), [0.0, 0.0], [2.5, 4.5]) == pytest.approx(2.0)
    tags = HeadSpec("a", "tags", None, ("x", "y"))
    assert loss(tags, [[[9.0, 9.0], [0.0, 5.0]]], [[IGNORED, 1]]) == pytest.approx(0.0067153, abs=1e-6)


@pytest.mark.parametrize(("fusion", "changes"), [("elmo", False), ("finetune", True)])
def test_a_frozen_language_model_keeps_its_fingerprint(make_heads: Any, fusion: str, changes: bool) -> None:
    model = make_heads(src_fusion=fusion).train()
    before = state_fingerprint(model.lm)
    optimizer = torch.optim.SGD([each for each in model.parameters() if each.requires_grad], 0.1)
    head = model.heads["mood"]
    weights = head.layer.weight.detach().clone()
    head.loss(model("mood", [A]), torch.tensor([0, 2])).backward()
    optimizer.step()
    assert (state_fingerprint(model.lm) != before) == changes
    assert not torch.equal(head.layer.weight, weights)


@pytest.mark.parametrize(
    ("kind", "pair", "classes", "message"),
    [
        ("class", "cos", ("a", "b", "c"), "cos gives one number"),
        ("tags", "concat", ("a", "b"), "single sentences"),
        ("class", None, ("a",), "one class alone"),
    ],
)
def test_heads_that_cannot_be_are_refused(kind: str, pair: Any, classes: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        HeadSpec("task", kind, pair, classes)


def test_weights_for_other_classes_are_refused(make_heads: Any) -> None:
    weights = make_heads([HeadSpec("mood", "class", None, ("bad", "good"))]).state_dict()
    with pytest.raises(InputError, match="'bad', 'good'"):
        make_heads([HeadSpec("mood", "class", None, ("good", "bad"))]).load_state_dict(weights)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"src_fusion": "none"}, "elmo .* or finetune"),
        ({"head_dropout": 1.0}, "--head-dropout 1"),
        ({"src_elmo_dropout": 0.1}, "--src-elmo-dropout would be ignored"),
    ],
)
def test_flags_that_do_not_go_together_are_refused(make_heads: Any, given: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_heads(**given)
