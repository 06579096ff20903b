"""The fast training pass of the LSTM decoder against fairseq's own, in float64 and in bfloat16."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models.lstm import LSTMDecoder
from torch import Tensor, nn

from lmfusion.kernels import lstm_decoder
from lmfusion.kernels.lstm_decoder import lstm_features

CLOSE = {"rtol": 1e-6, "atol": 1e-8}  # fairseq rounds scores of the attention to float32
ROWS, LENGTH, SOURCE, ENCODER = 4, 6, 5, 6
SIZES = [
    {"hidden_size": 8, "encoder_output_units": ENCODER, "out_embed_dim": 10}
]  # with projections of the last states
SIZES += [{"hidden_size": ENCODER, "encoder_output_units": ENCODER, "out_embed_dim": ENCODER}]  # with none


@pytest.fixture
def dictionary() -> Dictionary:
    found = Dictionary()
    for number in range(20):
        found.add_symbol(f"w{number}")
    return found


def decoder(dictionary: Dictionary, dropout: float = 0.0, **sizes: int) -> LSTMDecoder:
    torch.manual_seed(3)
    return LSTMDecoder(dictionary, embed_dim=7, dropout_in=dropout, dropout_out=dropout, **sizes).double().train()


def inputs(dtype: torch.dtype = torch.float64) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Tokens, and an encoder's states with the gradients that they get; two rows have padding."""
    torch.manual_seed(4)
    states, last = torch.randn(SOURCE, ROWS, ENCODER), torch.randn(2, 1, ROWS, ENCODER)
    padding = torch.arange(SOURCE).unsqueeze(1) >= torch.tensor([5, 5, 3, 1])
    given = [each.to(dtype).requires_grad_() for each in (states, *last)]
    return torch.randint(4, 24, (ROWS, LENGTH)), (*given, padding)


def gradients(features: Any, model: LSTMDecoder, dtype: torch.dtype = torch.float64) -> dict[str, Tensor]:
    """The features, and the gradients of every parameter and of the encoder's states, by name."""
    tokens, encoder_out = inputs(dtype)
    model.zero_grad()
    found = features(model, tokens, encoder_out)
    (found * torch.arange(found.numel()).view(found.shape).cos()).sum().backward()
    named = {name: parameter.grad for name, parameter in model.named_parameters() if parameter.grad is not None}
    return {"features": found.detach(), **named, **{f"encoder {n}": encoder_out[n].grad for n in range(3)}}


def fairseqs(model: LSTMDecoder, tokens: Tensor, encoder_out: Any) -> Tensor:
    found: Tensor = LSTMDecoder.extract_features(model, tokens, encoder_out)[0]
    return found


def ours(model: LSTMDecoder, tokens: Tensor, encoder_out: Any) -> Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        return lstm_features(model, tokens, encoder_out, None)[0]


def in_full(model: LSTMDecoder, tokens: Tensor, encoder_out: Any) -> Tensor:
    """Ours without rounding to bfloat16."""
    x = model.dropout_in_module(model.embed_tokens(tokens)).transpose(0, 1)
    x = lstm_decoder._all_positions(model, x, encoder_out).transpose(0, 1)
    return model.dropout_out_module(model.additional_fc(x)) if hasattr(model, "additional_fc") else x


@pytest.mark.parametrize("sizes", SIZES, ids=["projected", "plain"])
def test_features_and_all_gradients_are_fairseqs(dictionary: Dictionary, sizes: dict[str, int]) -> None:
    model = decoder(dictionary, **sizes)
    expected, found = gradients(fairseqs, model), gradients(in_full, model)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **CLOSE, msg=lambda text, name=name: f"{name}: {text}")


class _Fixed(nn.Module):
    """Dropout that multiplies by given masks, one after the other, and by none when they are through."""

    def __init__(self, masks: list[Tensor | None], p: float) -> None:
        super().__init__()
        self.masks, self.p, self.calls = masks, p, 0

    def forward(self, x: Tensor) -> Tensor:
        mask = self.masks[self.calls] if self.calls < len(self.masks) else None
        self.calls += 1
        return x if mask is None else x * mask


def test_dropout_is_on_the_output_that_is_fed_back(dictionary: Dictionary, monkeypatch: pytest.MonkeyPatch) -> None:
    model = decoder(dictionary, **SIZES[1])
    masks = torch.rand(LENGTH, ROWS, ENCODER, dtype=torch.float64).ge(0.5).double() * 2
    monkeypatch.setattr(lstm_decoder, "dropout", lambda ones, rate: ones * masks if rate == 0.5 else None)
    # fairseq drops hidden states, too, but for the layer above, of which there is none.
    model.dropout_out_module = _Fixed([each for mask in masks for each in (None, mask)], 0.5)
    expected = gradients(fairseqs, model)
    model.dropout_out_module = _Fixed([], 0.5)
    found = gradients(in_full, model)
    for name, value in expected.items():
        torch.testing.assert_close(found[name], value, **CLOSE)


@pytest.mark.parametrize("sizes", SIZES, ids=["projected", "plain"])
def test_in_bfloat16_it_is_nearer_to_float32_than_fairseqs(dictionary: Dictionary, sizes: dict[str, int]) -> None:
    def rounded(model: LSTMDecoder, tokens: Tensor, encoder_out: Any) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return fairseqs(model, tokens, encoder_out)

    model = decoder(dictionary, **sizes).float()
    exact, fast, slow = (gradients(which, model, torch.float32) for which in (fairseqs, ours, rounded))
    distance = {
        name: [((each[name].float() - value).norm() / value.norm()).item() for each in (fast, slow)]
        for name, value in exact.items()
    }
    assert 0 < distance["features"][0] < 0.01
    assert sum(error[0] for error in distance.values()) < sum(error[1] for error in distance.values())


@pytest.mark.parametrize(
    ("changes", "training", "autocast"),
    [({"num_layers": 2}, True, True), ({"attention": False}, True, True), ({}, False, True), ({}, True, False)],
    ids=["two layers", "no attention", "evaluation", "float32"],
)
def test_everything_else_is_fairseqs_to_the_last_bit(
    dictionary: Dictionary, changes: dict[str, Any], training: bool, autocast: bool
) -> None:
    model = decoder(dictionary, **{**SIZES[0], **changes}).float().train(training)
    tokens, (states, hidden, cell, padding) = inputs(torch.float32)
    layers = changes.get("num_layers", 1)
    encoder_out = (states, hidden.repeat(layers, 1, 1), cell.repeat(layers, 1, 1), padding)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        expected = LSTMDecoder.extract_features(model, tokens, encoder_out)
        found = lstm_features(model, tokens, encoder_out, None)
    assert torch.equal(found[0], expected[0])
    assert (found[1] is None) == (expected[1] is None)
