"""Linear layers in 8-bit integers: within the error that rounding explains, wherever a model has them."""

from __future__ import annotations

from pathlib import Path

import pytest
import sacrebleu
import torch
from torch import nn

import lmfusion
from lmfusion.inference.int8 import Int8Linear, quantize
from lmfusion.operations import Linear

ROOT = Path(__file__).resolve().parents[3]


# Without VNNI pairs of products of 8-bit inputs are summed in 16 bits, which is why quantize() then takes 7.
INPUTS = [True, *([False] if torch.cpu.get_capabilities().get("avx512_vnni", False) else [])]


@pytest.mark.parametrize("narrow", INPUTS, ids=lambda narrow: "7-bit inputs" if narrow else "8-bit inputs")
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("kind", [nn.Linear, Linear])
def test_a_layer_is_within_what_rounding_explains(kind: type[nn.Linear], has_bias: bool, narrow: bool) -> None:
    torch.manual_seed(1)
    layer = kind(100, 30, bias=has_bias).eval()
    with torch.no_grad():
        layer.weight[3] = 0.0
        layer.weight[4] *= 100.0
    x = torch.randn(7, 5, 100)
    weight, bias = layer.weight.detach().double(), layer.bias.detach().double() if has_bias else 0.0
    exact = x.double() @ weight.t() + bias
    assert quantize(layer) == 1
    assert layer.is_narrow in INPUTS
    layer.is_narrow = narrow
    with torch.no_grad():
        found = layer(x).double()
    of_input = (x.max() - x.min()).double() / (127 if narrow else 255)  # a step; rounded is at most one off, at an end
    of_weight = weight.abs().amax(1) / 127
    bound = (x.double().abs() + of_input).sum(-1, keepdim=True) * of_weight / 2 + of_input * weight.abs().sum(1)
    error = (found - exact).abs()
    assert bool((error <= bound + 1e-5).all())
    assert bool((error[..., :3] > 0).any()), "it is rounded"
    assert torch.allclose(found[..., 3], exact[..., 3], atol=1e-6), "of a row of zeros the bias is left"


def test_only_plain_linear_layers_are_taken_and_what_is_empty_stays_empty() -> None:
    class Own(nn.Linear):
        """Computes something else."""

    model = nn.ModuleList([nn.Linear(4, 3), Own(4, 3), nn.LSTM(4, 3), nn.Embedding(4, 3), nn.MultiheadAttention(4, 2)])
    assert quantize(model.eval()) == 1
    assert [type(each) for each in model[:2]] == [Int8Linear, Own]
    assert model[0](torch.zeros(0, 4)).shape == (0, 3)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float64])
def test_another_precision_is_refused_and_left_as_it_is(dtype: torch.dtype) -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2)).to(dtype)
    with pytest.raises(lmfusion.InputError, match="float32"):
        quantize(model)
    assert [type(each) for each in model] == [nn.Linear, nn.Linear]


@pytest.mark.parametrize("vnni", [True, False])
def test_inputs_have_all_8_bits_only_where_sums_cannot_overflow(vnni: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: {"avx512_vnni": vnni})
    layer = nn.Linear(4, 3).eval()
    assert quantize(layer) == 1
    assert isinstance(layer, Int8Linear)
    assert layer.is_narrow == (not vnni)


def test_a_model_on_another_device_is_refused_and_left_as_it_is() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.Linear(3, 2, device="meta"))
    with pytest.raises(lmfusion.InputError, match="CPU"):
        quantize(model)
    assert [type(each) for each in model] == [nn.Linear, nn.Linear]


def test_the_shipped_model_translates_nearly_the_same() -> None:
    lines = [
        "This package contains the documentation.",
        "A fast and small web browser for the console.",
        "The program reads a file and writes it to the printer.",
        "This is a library to read and write audio files, with bindings for Python.",
    ]
    model = lmfusion.load_model(ROOT / "pretrained" / "en-de.lmf").float()
    exact = model.translate(lines)
    assert quantize(model) > 50
    found = model.translate(lines)
    assert sacrebleu.corpus_bleu(found, [exact]).score > 70
