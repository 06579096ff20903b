"""On a GPU nothing of ours waits for a value, a batch is laid out once, and the numbers are those of a CPU's ways."""

from __future__ import annotations

from typing import Any, Callable

import pytest
import torch
from torch import Tensor

from lmfusion.lm.transformer.layout import RowLayout
from lmfusion.training.chunked_loss import chunked_cross_entropy

PAD = 1
RIGHT = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 2, 1, 1], [2, 4, 2, 1, 1, 1]])
LEFT = torch.tensor([[2, 5, 6, 7, 8, 2], [1, 1, 2, 9, 5, 2], [1, 1, 1, 2, 4, 2]])
FULL = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 7, 7, 2]])
QUIET = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}


def loss_and_gradients(lm: Any, tokens: Tensor) -> list[Tensor]:
    """Of a step in pretraining; every token is its own target."""

    def head(features: Tensor, weight: Tensor) -> Any:
        return chunked_cross_entropy(features, weight, tokens, padding_idx=PAD, label_smoothing=0.1)

    lm.zero_grad()
    loss = lm(tokens, head=head)[0].loss
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in lm.parameters() if parameter.grad is not None)]


@pytest.mark.parametrize("tokens", [RIGHT, LEFT, FULL], ids=["right", "left", "no padding"])
@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_a_step_of_pretraining_waits_for_nothing_and_is_the_same(
    request: pytest.FixtureRequest, kind: str, tokens: Tensor
) -> None:
    lm = request.getfixturevalue(kind)(**QUIET).double().train()
    expected = loss_and_gradients(lm, tokens)
    waiting = request.getfixturevalue("as_on_a_gpu")
    with waiting() as waits:
        found = loss_and_gradients(lm, tokens)
    assert waits.found == []
    assert len(found) == len(expected) > 10
    for one, other in zip(found, expected):
        torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-12)


def test_waits_are_noticed(as_on_a_gpu: Any) -> None:
    with as_on_a_gpu() as waits:
        assert bool(RIGHT.ne(PAD).any())
        assert len(RIGHT[RIGHT.ne(PAD)]) == 13
        RIGHT.ne(PAD).nonzero()
        assert not torch.equal(RIGHT, LEFT)
    assert waits.found == ["_local_scalar_dense", "index", "nonzero", "equal"]


@pytest.mark.parametrize("cell", ["elmo", "finetune", "attend"])
def test_a_source_side_waits_for_nothing(
    make_model: Callable[..., Any], request: pytest.FixtureRequest, net_input: Any, cell: str
) -> None:
    encoder = make_model(cell, "none").encoder
    reader, tokens = encoder.reader or encoder.embed_tokens, net_input["src_tokens"]

    def embed() -> Tensor:
        states, framed, layout = reader.read(tokens)
        x = states.top if cell == "attend" else reader.fusion.embed(states)
        made: Tensor = reader.as_embeddings(x, framed, layout)
        return made

    expected = embed()
    waiting = request.getfixturevalue("as_on_a_gpu")
    with waiting() as waits:
        found = embed()
    assert waits.found == []
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("cell", ["elmo", "finetune"])
def test_a_batch_is_laid_out_once(
    make_model: Callable[..., Any], net_input: Any, monkeypatch: pytest.MonkeyPatch, cell: str
) -> None:
    embedding, tokens = make_model(cell, "none").encoder.embed_tokens, net_input["src_tokens"]
    framed, _ = embedding.frame(tokens)
    alone = embedding.fusion.embed(embedding.fusion.read(framed.tokens.clone()))  # nobody told how these are laid out
    made = []
    original = RowLayout.__init__
    monkeypatch.setattr(RowLayout, "__init__", lambda self, mask: made.append(mask) or original(self, mask))
    states, framed, _ = embedding.read(tokens)
    assert len(made) == 1
    assert torch.equal(embedding.fusion.embed(states), alone)


@pytest.mark.parametrize("size", [0, 1, 2])
def test_the_layout_of_framed_rows_is_that_of_their_tokens(size: int) -> None:
    for tokens in (RIGHT, LEFT, FULL):
        layout = RowLayout(tokens.eq(PAD))
        rows = torch.cat([torch.full((len(tokens), size), 7), layout.align(tokens)], 1)
        framed, expected = layout.with_frame(size), RowLayout(rows.eq(PAD))
        states = torch.randn(*rows.shape, 3)
        assert torch.equal(framed.lengths, expected.lengths)
        assert torch.equal(framed.padding, expected.padding)
        assert torch.equal(framed.reverse(states), expected.reverse(states))
        assert torch.equal(framed.unpack(framed.pack(states)), expected.unpack(expected.pack(states)))
        assert framed.is_left_aligned
        assert (framed.has_padding, framed.packs) == (expected.has_padding, expected.packs)


def test_orders_are_those_of_a_stable_sort() -> None:
    """Padding anywhere, as no data set of fairseq's has it."""
    generator = torch.Generator().manual_seed(1)
    tokens = torch.arange(50 * 9).view(50, 9)
    mask = torch.rand(50, 9, generator=generator) < 0.4
    layout = RowLayout(mask)
    for row, hidden, found in zip(tokens, mask, layout.align(tokens)):
        assert found.tolist() == [*row[~hidden].tolist(), *row[hidden].tolist()]
    assert torch.equal(layout.restore(layout.align(tokens).unsqueeze(-1)).squeeze(-1), tokens)
