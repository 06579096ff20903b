"""Cold and deep fusion: the decoder's features by their formulas in float64, and who is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.interface import FUSIONS, Side
from lmfusion.lm.loading import build


def matrix(layer: Any) -> tuple[Tensor, Tensor]:
    """W (out x in) and b of a layer, in float64."""
    return layer.weight.detach().double(), layer.bias.detach().double()


@pytest.fixture
def make(make_causal: Any, shake: Any) -> Any:
    def make(name: str) -> tuple[Any, Tensor, Tensor, Tensor]:
        """An integration of a width of 8, features (B 2, T 3), top states and logits of the LM on two prefixes."""
        lm = make_causal()
        side = Side("tgt", "target", "decoder", lm.symbols, 8, heads=2)
        fusion = shake(FUSIONS[name](lm, side, FUSIONS[name].Config())).eval()
        tokens = torch.tensor([[2, 5, 9], [2, 6, 7]])
        torch.manual_seed(4)
        with torch.no_grad():
            top = lm.top_state(tokens)
            logits = lm(tokens)[0].double()
        return fusion, torch.randn(2, 3, 8), top.double(), logits

    return make


@torch.no_grad()
def test_cold_fusion_is_the_papers_formula(make: Any) -> None:
    fusion, x, _, logits = make("cold")
    found = fusion.features(x, fusion.read(torch.tensor([[2, 5, 9], [2, 6, 7]])))
    (w1, b1), (w2, b2), (w3, b3) = (matrix(layer) for layer in (fusion.logits_layer, fusion.gate, fusion.output_layer))
    for row in range(2):
        for step in range(3):
            s, given = x[row, step].double(), logits[row, step]
            h = (w1 @ (given - given.mean()) / len(given) ** 0.5 + b1).clamp(min=0)
            g = 1 / (1 + (-(w2 @ torch.cat([s, h]) + b2)).exp())
            expected = (w3 @ torch.cat([s, g * h]) + b3).clamp(min=0)
            torch.testing.assert_close(found[row, step].double(), expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_logits_that_differ_by_a_constant_are_the_same_to_cold_fusion(
    make: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    fusion, x, _, _ = make("cold")
    states = fusion.read(torch.tensor([[2, 5, 9], [2, 6, 7]]))
    before, original = fusion.features(x, states), fusion.lm.logits
    monkeypatch.setattr(fusion.lm, "logits", lambda top: original(top) + 5.0)
    torch.testing.assert_close(fusion.features(x, states), before, rtol=0, atol=1e-5)


@torch.no_grad()
def test_deep_fusion_is_the_papers_formula(make: Any) -> None:
    fusion, x, top, _ = make("deep")
    found = fusion.features(x, fusion.read(torch.tensor([[2, 5, 9], [2, 6, 7]])))
    (v, b), (w, c) = matrix(fusion.gate), matrix(fusion.output_layer)
    for row in range(2):
        for step in range(3):
            s, h = x[row, step].double(), top[row, step]
            g = 1 / (1 + (-(v[0] @ h + b[0])).exp())
            torch.testing.assert_close(found[row, step].double(), w @ torch.cat([s, g * h]) + c, rtol=0, atol=1e-5)


def test_logits_start_with_weights_that_outdo_their_division(make_causal: Any) -> None:
    """Normal ones of a standard deviation of 1/2: they see logits divided by the square root of their number."""
    lm = make_causal()
    side = Side("tgt", "target", "decoder", lm.symbols, 64, heads=2)
    layer: Any = FUSIONS["cold"](lm, side, FUSIONS["cold"].Config()).logits_layer
    assert layer.weight.shape == (64, 24)
    assert layer.weight.std().item() == pytest.approx(0.5, rel=0.1)
    assert not layer.bias.any()


def test_the_gate_of_deep_fusion_is_nearly_closed_at_first(make_model: Any) -> None:
    assert make_model("none", "deep").decoder.fusion.gate.bias.tolist() == [-1.0]


@pytest.mark.parametrize("fusion", ["cold", "deep"])
def test_the_decoder_keeps_its_embeddings_and_may_tie_them(make_model: Any, fusion: str) -> None:
    model = make_model("none", fusion, share_decoder_input_output_embed=True)
    assert model.decoder.output_projection.weight is model.decoder.embed_tokens.weight


@pytest.mark.parametrize("fusion", ["cold", "deep"])
@torch.no_grad()
def test_a_beam_finds_what_whole_passes_score(make_model: Any, task: Any, net_input: Any, fusion: str) -> None:
    model = make_model("none", fusion)
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=6, normalize_scores=False)
    source = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
    for row, beam in enumerate(generator.generate([model], {"net_input": source})):
        for hypothesis in beam:
            words = hypothesis["tokens"]
            prefix = torch.cat([words.new_tensor([2]), words[:-1]])[None]
            logits = model(source["src_tokens"][row : row + 1], source["src_lengths"][row : row + 1], prefix)[0]
            scores = logits[0].double().log_softmax(-1).gather(1, words[:, None])
            assert hypothesis["score"] == pytest.approx(scores.sum().item(), abs=1e-4)


def test_cold_fusion_refuses_what_predicts_no_words(task: Any) -> None:
    lm = build({"family": "static", "channels": 16}, task.target_dictionary.symbols)
    assert "predicts no words" in str(FUSIONS["cold"].refusal(type(lm)))
    assert FUSIONS["deep"].refusal(type(lm)) is None


@pytest.mark.parametrize("fusion", ["cold", "deep"])
def test_the_source_side_has_no_such_integration(make_model: Any, fusion: str) -> None:
    with pytest.raises(InputError, match=f"--src-fusion {fusion}"):
        make_model(fusion, "none")
