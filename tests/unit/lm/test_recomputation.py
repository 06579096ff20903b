"""``--checkpoint-activations``: layers are computed again in the pass backward: the same gradients, less is kept."""

from __future__ import annotations

import copy
from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from torch import Tensor, nn

from lmfusion.lm.causal import UniTransformerLanguageModel
from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.lm.recomputation import recompute_layers

TOKENS = torch.tensor([[2, 5, 6, 7, 8, 2], [2, 9, 5, 2, 1, 1], [2, 4, 2, 1, 1, 1]])
DROPPING = {"dropout": 0.1, "attention_dropout": 0.2, "activation_dropout": 0.1}
KINDS = pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])


def gradients(lm: nn.Module) -> dict[str, Tensor]:
    """Of a step with dropout."""
    lm.zero_grad()
    torch.manual_seed(3)
    lm(TOKENS)[0][TOKENS != 1].log_softmax(-1)[:, 5].sum().backward()
    return {name: parameter.grad.clone() for name, parameter in lm.named_parameters() if parameter.grad is not None}


def kept(lm: nn.Module) -> int:
    """Numbers kept for the pass backward."""
    seen: dict[int, int] = {}

    def note(tensor: Tensor) -> Tensor:
        seen[tensor.untyped_storage().data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        made = lm(TOKENS)[0]
    assert made.requires_grad
    return sum(seen.values())


@KINDS
@pytest.mark.parametrize("frozen", [0, 1, 2])
def test_gradients_are_the_same_and_less_is_kept(request: pytest.FixtureRequest, kind: str, frozen: int) -> None:
    """Also where the layers below are frozen, so that no input of a layer wants a gradient."""
    lm = request.getfixturevalue(kind)(**DROPPING).train()
    if frozen:
        lm.freeze_layers(frozen - 1)
    expected, before = gradients(lm), kept(lm)
    recompute_layers(lm)
    found = gradients(lm)
    assert list(found) == list(expected)
    assert any(".ffn." in name for name in found)
    assert all(torch.equal(found[name], expected[name]) for name in found)
    assert kept(lm) < 0.8 * before


@KINDS
def test_weights_keep_their_names_and_a_copy_computes_by_its_own(request: pytest.FixtureRequest, kind: str) -> None:
    """--store-ema copies the model."""
    lm = request.getfixturevalue(kind)(**DROPPING)
    names = list(lm.state_dict())
    recompute_layers(lm)
    assert list(lm.state_dict()) == names
    twin = copy.deepcopy(lm).train()
    expected = gradients(lm.train())
    with torch.no_grad():
        for parameter in lm.parameters():
            parameter.zero_()
    assert all(torch.equal(found, expected[name]) for name, found in gradients(twin).items())
    with torch.no_grad():
        assert not torch.equal(lm.eval()(TOKENS)[0], twin.eval()(TOKENS)[0])


@KINDS
def test_pretraining_takes_the_flag_and_the_language_model_does_not_keep_it(
    request: pytest.FixtureRequest, kind: str
) -> None:
    """Stored states are found by the configuration, which older checkpoints have without it."""
    lm = request.getfixturevalue(kind)(**DROPPING)
    family = BiTransformerLanguageModel if kind == "make_cloze" else UniTransformerLanguageModel
    sizes = {name: value for name, value in lm.config.items() if name != "targets"}
    task = SimpleNamespace(target_dictionary=lm.dictionary, targets=lm.config.get("targets", ["future"]))
    models = []
    for again in (False, True):
        torch.manual_seed(1)
        models.append(family.build_model(Namespace(**sizes, checkpoint_activations=again), task).train())
    plain, recomputing = models
    assert plain.decoder.config == recomputing.decoder.config == lm.config
    expected, found = gradients(plain), gradients(recomputing)
    assert all(torch.equal(found[name], expected[name]) for name in expected)
    assert kept(recomputing) < 0.8 * kept(plain)
