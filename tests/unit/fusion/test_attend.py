"""Attention to the source LM in every layer: its figures by hand in float64, drop-net, beams, and what is refused."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from fairseq.modules import MultiheadAttention
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.attend import AveragedAttention
from lmfusion.fusion.interface import Place
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.kernels.fairseq_attention import FastAttention

PADDING = torch.tensor([[True, False, False], [False, False, False]])  # of the source, on the left


def by_hand(module: MultiheadAttention, query: Tensor, keys: Tensor, padding: Tensor) -> Tensor:
    """softmax(Q Kᵀ / sqrt(D)) V of every head, row by row: T x B x C of T x B x C and S x B x C'."""
    rows = []
    for row in range(query.size(1)):
        q, k, v = module.q_proj(query[:, row]), module.k_proj(keys[:, row]), module.v_proj(keys[:, row])
        heads = []
        for channels in torch.arange(q.size(1)).chunk(module.num_heads):
            scores = q[:, channels] @ k[:, channels].t() / math.sqrt(len(channels))
            weights = scores.masked_fill(padding[row], float("-inf")).exp()
            heads.append(weights / weights.sum(-1, keepdim=True) @ v[:, channels])
        rows.append(module.out_proj(torch.cat(heads, dim=-1)))
    return torch.stack(rows, dim=1)


@pytest.fixture
def averaged(make_fusion: Any, make_cloze: Any, shake: Any) -> Any:
    """One self-attention of an encoder, averaged with attention to states of the LM (C 16), in float64."""

    def make(dropnet: float) -> tuple[AveragedAttention, Tensor, Tensor]:
        torch.manual_seed(3)
        fusion = make_fusion("attend", make_cloze(), attend_dropnet=dropnet)
        module = fusion.attention(MultiheadAttention(8, 2, self_attention=True), Place("encoder", 0, "self"))
        states = torch.randn(2, 3, 16, dtype=torch.float64)
        fusion.receive([states], PADDING)
        return shake(module).double(), torch.randn(3, 2, 8, dtype=torch.float64), states

    return make


@torch.no_grad()
def test_decoding_takes_the_mean_of_both_attentions(averaged: Any) -> None:
    module, query, states = averaged(0.5)
    x = by_hand(module.own, query, query, PADDING)
    y = by_hand(module.to_lm, query, states.transpose(0, 1), PADDING)
    found, _ = module.eval()(query, query, query, key_padding_mask=PADDING, need_weights=False)
    torch.testing.assert_close(found[1:], ((x + y) / 2)[1:], rtol=0, atol=1e-12)
    torch.testing.assert_close(found[:1, 1], ((x + y) / 2)[:1, 1], rtol=0, atol=1e-12)


@pytest.mark.parametrize("dropnet", [0.0, 0.5, 1.0])
@torch.no_grad()
def test_drop_net_chooses_one_attention_as_often_as_it_says(averaged: Any, dropnet: float) -> None:
    module, query, states = averaged(dropnet)
    x = by_hand(module.own, query, query, PADDING)
    y = by_hand(module.to_lm, query, states.transpose(0, 1), PADDING)
    counts, steps = dict.fromkeys(("own", "mean", "lm"), 0), 400
    module.train()
    total = torch.zeros_like(x)
    for _ in range(steps):
        found, _ = module(query, query, query, key_padding_mask=PADDING, need_weights=False)
        total += found
        for name, expected in (("own", x), ("mean", (x + y) / 2), ("lm", y)):
            counts[name] += torch.allclose(found[1:], expected[1:], rtol=0, atol=1e-9)
    assert sum(counts.values()) == steps
    deviation = 4 * math.sqrt(steps / 4)
    assert abs(counts["own"] - steps * dropnet / 2) <= (deviation if dropnet else 0)
    assert abs(counts["lm"] - steps * dropnet / 2) <= (deviation if dropnet else 0)
    assert counts["mean"] == 0 or dropnet < 1
    # What decoding takes is what training gives on average.
    spread = (x - y)[1:].abs().max()
    assert ((total / steps - (x + y) / 2)[1:].abs() <= spread * 2 / math.sqrt(steps) + 1e-9).all()


@pytest.mark.parametrize("chosen", ["encoder", "decoder", "both", None])
def test_layers_attend_where_the_flag_says(make_model: Any, chosen: str | None) -> None:
    model = make_model("attend", "none", src_attend_in=chosen, encoder_layers=2, decoder_layers=2)
    found = {name for name, module in model.named_modules() if isinstance(module, AveragedAttention)}
    expected = {f"encoder.layers.{number}.self_attn" for number in range(2)} if chosen != "decoder" else set()
    expected |= {f"decoder.layers.{number}.encoder_attn" for number in range(2)} if chosen != "encoder" else set()
    assert found == expected


def test_every_layer_attends_although_layer_drop_leaves_some_out_in_training(make_model: Any) -> None:
    """A list of fairseq's with LayerDrop, iterated while a model is built, has layers at random."""
    drop = {"encoder_layerdrop": 0.9, "decoder_layerdrop": 0.9}
    model = make_model("attend", "none", encoder_layers=4, decoder_layers=4, **drop)
    assert sum(isinstance(module, AveragedAttention) for module in model.modules()) == 8


@pytest.mark.parametrize("chosen", ["decoder", "both", None])
def test_a_decoder_without_attention_to_the_source_cannot_attend(make_model: Any, chosen: str | None) -> None:
    with pytest.raises(InputError, match="--no-cross-attention"):
        make_model("attend", "none", src_attend_in=chosen, no_cross_attention=True)


def test_all_attentions_have_the_fast_kernels(make_model: Any) -> None:
    model = make_model("attend", "none")
    kinds = {type(module) for module in model.modules() if isinstance(module, MultiheadAttention)}
    assert kinds == {FastAttention}


def test_attention_to_the_lm_has_the_heads_and_the_dropout_of_the_layers_own(make_model: Any) -> None:
    model = make_model("attend", "none", attention_dropout=0.3)
    found = [module for module in model.modules() if isinstance(module, AveragedAttention)]
    assert len(found) == 2
    for module in found:
        assert (module.own.num_heads, module.to_lm.num_heads) == (2, 2)
        assert (module.own.dropout_module.p, module.to_lm.dropout_module.p) == (0.3, 0.3)


def test_every_parameter_has_a_gradient_in_every_step(make_model: Any, net_input: Any) -> None:
    """Also of what drop-net leaves out: processes that train together must agree on who has one."""
    model = make_model("attend", "none", src_attend_dropnet=1.0).train()
    for _ in range(3):
        model.zero_grad()
        model(**net_input)[0].sin().sum().backward()
        for name, parameter in model.named_parameters():
            assert (parameter.grad is not None) == parameter.requires_grad, name


@torch.no_grad()
def test_a_beam_finds_what_whole_passes_score(make_model: Any, task: Any, net_input: Any) -> None:
    """fairseq's own generator, whose cache the layers use: its scores are those of the whole pass."""
    from fairseq.sequence_generator import SequenceGenerator

    model = make_model("attend", "elmo")
    generator = SequenceGenerator([model], task.target_dictionary, beam_size=3, max_len_b=6, normalize_scores=False)
    source = {name: net_input[name] for name in ("src_tokens", "src_lengths")}
    for row, beam in enumerate(generator.generate([model], {"net_input": source})):
        assert len(beam) == 3
        for hypothesis in beam:
            words = hypothesis["tokens"]
            prefix = torch.cat([words.new_tensor([2]), words[:-1]])[None]
            logits = model(source["src_tokens"][row : row + 1], source["src_lengths"][row : row + 1], prefix)[0]
            scores = logits[0].double().log_softmax(-1).gather(1, words[:, None])
            assert hypothesis["score"] == pytest.approx(scores.sum().item(), abs=1e-4)


def test_layers_computed_again_draw_the_same(make_cell: Any, task: Any, net_input: Any) -> None:
    gradients = []
    for again in (False, True):
        torch.manual_seed(1)
        cfg = make_cell("attend", "none", checkpoint_activations=again, src_attend_dropnet=1.0)
        model = TransformerLMFusion.build_model(cfg, task).train()
        torch.manual_seed(2)
        model(**net_input)[0].sin().sum().backward()
        gradients.append([parameter.grad for parameter in model.parameters() if parameter.requires_grad])
    for one, other in zip(*gradients, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"src_attend_in": "everywhere"}, "--src-attend-in everywhere"),
        ({"src_attend_dropnet": 1.5}, "--src-attend-dropnet 1.5"),
        ({"src_embed_scale": 2.0}, "--src-embed-scale"),
        ({"src_lm_layers": "1"}, "--src-lm-layers"),
    ],
)
def test_flags_that_make_no_sense_are_refused(make_model: Any, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model("attend", "none", **flags)


def test_the_target_side_has_no_such_integration(make_model: Any) -> None:
    with pytest.raises(InputError, match="--tgt-fusion attend"):
        make_model("none", "attend")


@torch.no_grad()
def test_half_precision_gives_the_same_within_its_rounding(make_model: Any, net_input: Any) -> None:
    model = make_model("attend", "none")
    exact = model(**net_input)[0]
    rounded = model.bfloat16()(**net_input)[0]
    assert rounded.dtype == torch.bfloat16
    assert (rounded.float() - exact).abs().max() < 0.05 * exact.abs().max()
