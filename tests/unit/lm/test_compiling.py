"""A language model that is compiled is one graph: nothing of ours breaks it, and it computes the same."""

from __future__ import annotations

import pytest
import torch

from lmfusion.kernels import matrix_product

pytestmark = pytest.mark.slow

TOKENS = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 2, 1, 1], [2, 4, 2, 1, 1, 1]])


@pytest.fixture(autouse=True)
def _onednn_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """The processor would be right and nothing too small."""
    monkeypatch.setattr(matrix_product, "onednn_is_faster", lambda: True)
    monkeypatch.setattr(matrix_product, "MIN_ROWS", 1)
    torch._dynamo.reset()


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_in_evaluation_it_is_one_graph_of_the_same_states(request: pytest.FixtureRequest, kind: str) -> None:
    lm = request.getfixturevalue(kind)()
    compiled = torch.compile(lm, backend="eager", fullgraph=True)
    for tokens in (TOKENS, TOKENS.flip(1)):  # padding on either side
        with torch.no_grad():
            words = tokens != 1
            assert torch.allclose(compiled(tokens)[0][words], lm(tokens)[0][words], atol=1e-5)


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_in_training_it_is_one_graph_of_the_same_gradients(request: pytest.FixtureRequest, kind: str) -> None:
    lm = request.getfixturevalue(kind)(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0).train()
    found = []
    for called in (lm, torch.compile(lm, backend="eager", fullgraph=True)):
        lm.zero_grad()
        called(TOKENS)[0][TOKENS != 1].log_softmax(-1)[:, 5].sum().backward()
        found.append([parameter.grad for parameter in lm.parameters() if parameter.grad is not None])
    assert len(found[0]) == len(found[1]) > 10
    for one, other in zip(*found):
        assert torch.allclose(one, other, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_dropout_and_attention_dropout_break_no_graph(request: pytest.FixtureRequest, kind: str) -> None:
    lm = request.getfixturevalue(kind)(dropout=0.1, attention_dropout=0.1, activation_dropout=0.1).train()
    assert torch._dynamo.explain(lm)(TOKENS).graph_count == 1
