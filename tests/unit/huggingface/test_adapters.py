"""Low-rank adapters: nothing changes at first, they alone are trained, and a checkpoint has all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Callable

import pytest
import torch
from torch import Tensor

import lmfusion
from lmfusion.errors import InputError
from lmfusion.lm.freezing import state_fingerprint
from lmfusion.lm.loading import build, describe

pytest.importorskip("peft")

Saved = Callable[[str], Path]


def product(lm: lmfusion.PretrainedLM, name: str, x: Tensor) -> Tensor:
    """W x + b + 2 B A x of a layer with an adapter of rank 3, from its weights alone."""
    weights = {key: value.double() for key, value in lm.state_dict().items() if key.startswith(name)}
    straight = x @ weights[f"{name}.base_layer.weight"].T + weights[f"{name}.base_layer.bias"]
    down, up = weights[f"{name}.lora_A.default.weight"], weights[f"{name}.lora_B.default.weight"]
    assert down.shape[0] == 3
    return straight + 2 * (x @ down.T) @ up.T


@pytest.mark.parametrize("model_type", ["bert", "gpt2", "t5", "llama", "distilbert"])
def test_adapters_alone_are_trained_and_travel_with_the_model(saved_models: Saved, model_type: str) -> None:
    plain = lmfusion.load_lm(saved_models(model_type))
    lm = lmfusion.load_lm(saved_models(model_type), lora=3)
    tokens = lm.encode("A file that is displayed.")
    expected = plain.top_state(tokens)
    torch.testing.assert_close(lm.top_state(tokens), expected)
    assert state_fingerprint(lm) == state_fingerprint(lmfusion.load_lm(saved_models(model_type), lora=3))

    lm.unfreeze().train()
    trained = {name for name, weight in lm.named_parameters() if weight.requires_grad}
    assert trained
    assert all(".lora_" in name for name in trained)
    before = {name: weight.detach().clone() for name, weight in lm.named_parameters()}
    optimizer = torch.optim.Adam([weight for weight in lm.parameters() if weight.requires_grad], lr=0.1)
    for _ in range(2):  # the first gradient of A is zero, as B is
        optimizer.zero_grad()
        lm.top_state(tokens).pow(2)[0, 1:].sum().backward()
        optimizer.step()
    changed = {name for name, weight in lm.named_parameters() if not torch.equal(weight, before[name])}
    assert changed <= trained
    assert len(changed) > 0.9 * len(trained)

    again = build(json.loads(json.dumps(describe(lm))), lm.symbols)
    again.load_state_dict(lm.state_dict())
    after = again.eval().top_state(tokens)
    torch.testing.assert_close(after, lm.eval().top_state(tokens))
    assert (after - expected).abs().max() > 0.1


@torch.no_grad()
def test_a_layer_with_an_adapter_is_the_formula_of_the_paper(saved_models: Saved) -> None:
    lm = lmfusion.load_lm(saved_models("bert"), lora=3)
    name = "model.encoder.layer.1.attention.self.query"
    layer = lm.get_submodule(name)
    layer.lora_B.default.weight.normal_()
    x = torch.randn(4, 16)
    torch.testing.assert_close(layer(x).double(), product(lm, name, x.double()), rtol=1e-5, atol=1e-5)


@torch.no_grad()
@pytest.mark.parametrize("model_type", ["bert", "gpt2", "t5"])
def test_before_decoding_they_become_part_of_the_weights(saved_models: Saved, model_type: str) -> None:
    lm = lmfusion.load_lm(saved_models(model_type), lora=3)
    for name, weight in lm.named_parameters():
        if ".lora_B." in name:
            weight.normal_()
    tokens = lm.encode("A file that is displayed.")
    expected = lm.top_state(tokens)
    for _ in range(2):  # several models of an ensemble may share it
        lm.make_generation_fast_(beamable_mm_beam_size=None)
    adapters = [part for name, part in lm.named_modules() if name.endswith(".lora_B.default")]
    assert adapters
    for adapter in adapters:
        adapter.register_forward_hook(lambda *_: pytest.fail("an adapter was computed beside its layer"))
    torch.testing.assert_close(lm.top_state(tokens), expected, rtol=1e-4, atol=1e-4)


def test_lower_layers_keep_their_adapters_as_they_are(saved_models: Saved) -> None:
    lm = lmfusion.load_lm(saved_models("bert"), lora=2).unfreeze()
    lm.freeze_layers(1)
    trained = {lm.layer_of(name) for name, weight in lm.named_parameters() if weight.requires_grad}
    assert trained == {2}


@pytest.mark.parametrize("rank", [0, -1, 17])
def test_a_rank_that_is_none_is_refused(saved_models: Saved, rank: int) -> None:
    with pytest.raises(InputError, match=r"from 1 to 16"):
        lmfusion.load_lm(saved_models("bert"), lora=rank)


def test_a_model_has_adapters_once(saved_models: Saved, tmp_path: Path) -> None:
    from lmfusion.lm.huggingface_file import save

    save(lmfusion.load_lm(saved_models("bert"), lora=2), tmp_path / "lm.pt")
    assert lmfusion.load_lm(tmp_path / "lm.pt").config["lora"] == 2
    with pytest.raises(InputError, match="already"):
        lmfusion.load_lm(tmp_path / "lm.pt", lora=2)
