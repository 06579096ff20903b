"""ELMo (a frozen LM, its layers mixed) and fine-tuning (a trained LM, its top state)."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

TOKENS = torch.tensor([[2, 5, 9, 4, 2], [2, 7, 8, 2, 1]])


def snapshot(module: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in module.state_dict().items()}


def train_some(representation: nn.Module, steps: int = 3) -> None:
    """A few optimizer steps on whatever asks for gradients, weight decay included."""
    representation.train()
    optimizer = torch.optim.AdamW([p for p in representation.parameters() if p.requires_grad], lr=0.1)
    goal = torch.randn(2, 5, 8)
    for _ in range(steps):
        optimizer.zero_grad()
        (representation(TOKENS) - goal).square().sum().backward()
        optimizer.step()


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_elmo_is_a_projected_mix_of_all_layers(
    make_fusion: Any, make_cloze: Any, make_causal: Any, side: str, shake: Any
) -> None:
    lm = make_cloze() if side == "cloze" else make_causal()
    states = lm.layer_states(TOKENS)
    representation = make_fusion("elmo", lm, elmo_affine=True).eval()
    shake(representation.mix)
    assert representation.projection is not None
    assert representation.projection.bias is None
    expected = representation.mix(states) @ representation.projection.weight.T
    assert len(states) == lm.num_layers + (3 if side == "cloze" else 1)
    torch.testing.assert_close(representation(TOKENS), expected)


def test_elmo_has_no_projection_where_sizes_agree(make_fusion: Any, make_cloze: Any, make_causal: Any) -> None:
    for lm, size in ((make_cloze(), 32), (make_causal(), 16)):
        representation = make_fusion("elmo", lm, size, elmo_affine=True)
        assert representation.projection is None
        assert representation(TOKENS).shape == (2, 5, size)


@pytest.mark.parametrize(("strategy", "inner"), [("elmo", 32), ("finetune", 16)])
def test_projections_start_xavier_uniform(make_fusion: Any, make_cloze: Any, strategy: str, inner: int) -> None:
    """Within sqrt(6 / (C' + C))."""
    representation = make_fusion(strategy, make_cloze(), 64)
    assert representation.projection is not None
    weight = representation.projection.weight.detach()
    bound = (6 / (inner + 64)) ** 0.5
    assert weight.shape == (64, inner)
    assert 0.98 * bound < weight.abs().max() <= bound
    assert weight.std() == pytest.approx(bound / 3**0.5, rel=0.05)


def test_training_changes_no_bit_of_a_frozen_lm(make_fusion: Any, make_cloze: Any) -> None:
    flags = {"elmo_affine": True, "elmo_dropout": 0.2, "representation_dropout": 0.1}
    representation = make_fusion("elmo", make_cloze(dropout=0.5), **flags)
    before = snapshot(representation)
    train_some(representation)
    after = snapshot(representation)
    assert after.keys() == before.keys()
    for name in before:
        assert torch.equal(after[name], before[name]) == name.startswith("lm."), name
    assert all(parameter.grad is None for parameter in representation.lm.parameters())


def test_frozen_lm_is_never_in_train_mode(make_fusion: Any, make_cloze: Any) -> None:
    representation = make_fusion("elmo", make_cloze(dropout=0.5, input_dropout=0.5), elmo_affine=True)
    for switch in (representation.train, representation.lm.train, nn.ModuleList([representation]).train):
        switch()
        assert not any(module.training for module in representation.lm.modules())
    assert representation.training
    assert representation.mix.training
    torch.testing.assert_close(representation(TOKENS), representation.eval()(TOKENS))


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_fine_tuning_uses_the_top_state(make_fusion: Any, make_cloze: Any, make_causal: Any, side: str) -> None:
    lm = make_cloze() if side == "cloze" else make_causal()
    top = lm.top_state(TOKENS)
    representation = make_fusion("finetune", lm).eval()
    assert representation.projection is not None
    torch.testing.assert_close(representation(TOKENS), top @ representation.projection.weight.T)
    same_size = make_fusion("finetune", lm, 16).eval()
    torch.testing.assert_close(same_size(TOKENS), top, rtol=0, atol=0)


@pytest.mark.parametrize("side", ["cloze", "causal"])
def test_fine_tuning_trains_every_tensor_of_the_lm(
    make_fusion: Any, make_cloze: Any, make_causal: Any, side: str
) -> None:
    lm = (make_cloze() if side == "cloze" else make_causal()).freeze()  # as load_lm returns it
    representation = make_fusion("finetune", lm)
    before = snapshot(representation)
    train_some(representation)
    unchanged = {name for name, value in snapshot(representation).items() if torch.equal(value, before[name])}
    assert unchanged == {"lm.symbol_table.codes"}


def test_fine_tuned_lm_drops_out_in_training_only(make_fusion: Any, make_cloze: Any) -> None:
    representation = make_fusion("finetune", make_cloze(dropout=0.5).freeze())
    representation.train()
    assert not torch.equal(representation(TOKENS), representation(TOKENS))
    representation.eval()
    assert torch.equal(representation(TOKENS), representation(TOKENS))


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_dropout_of_the_representation(make_fusion: Any, make_causal: Any, strategy: str) -> None:
    quiet = make_causal(dropout=0.0, attention_dropout=0.0, activation_dropout=0.0)
    representation = make_fusion(strategy, quiet, representation_dropout=0.5)
    full = representation.eval()(TOKENS)
    dropped = representation.train()(TOKENS)
    kept = dropped.ne(0)
    assert 0.2 < kept.float().mean().item() < 0.8
    torch.testing.assert_close(dropped[kept], 2 * full[kept])


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_a_softmax_that_nobody_needs_is_dropped(make_fusion: Any, make_causal: Any, strategy: str) -> None:
    representation = make_fusion(strategy, make_causal())
    assert not [name for name in representation.state_dict() if "output_weight" in name]
