"""Stacks that start from a language model compute what it does, and are fairseq's from then on."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.models.transformer import TransformerDecoderBase, TransformerEncoderBase
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.inspection import inspect_checkpoint
from lmfusion.lm.loading import load_lm
from lmfusion.lm.transformer.layout import RowLayout

PREFIXES = torch.tensor([[2, 5, 8, 4, 9, 6], [2, 4, 4, 7, 5, 3]])


def silence_cross_attention(model: TransformerLMFusion) -> None:
    """Make attention to the encoder add nothing, as before there was one."""
    with torch.no_grad():
        for layer in model.decoder.layers:
            layer.encoder_attn.out_proj.weight.zero_()
            layer.encoder_attn.out_proj.bias.zero_()


def causal_states(encoder: Any, rows: Tensor) -> Tensor:
    """An encoder's output if its layers hid later words, as a tower's do: B x T x C."""
    x, _ = encoder.forward_embedding(rows)
    x, hidden = x.transpose(0, 1), torch.ones(rows.size(1), rows.size(1)).triu(1)
    for layer in encoder.layers:
        x = layer(x, encoder_padding_mask=None, attn_mask=hidden)
    return encoder.layer_norm(x).transpose(0, 1)


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_a_decoder_without_its_source_is_the_causal_lm(
    make_cfg: Any, task: Any, make_causal: Any, save_lm: Any, target_dictionary: Any, shake: Any, tied: bool
) -> None:
    template = make_causal(share_decoder_input_output_embed=tied)
    lm = shake(type(template)(template.config, target_dictionary)).eval()
    cfg = make_cfg(tgt_fusion="initialise", tgt_lm=str(save_lm(lm)), share_decoder_input_output_embed=tied)
    model = TransformerLMFusion.build_model(cfg, task).eval()
    silence_cross_attention(model)
    encoded = model.encoder(torch.tensor([[5, 9, 2], [6, 7, 2]]), torch.tensor([3, 3]))
    found, _ = model.decoder(PREFIXES, encoder_out=encoded)
    torch.testing.assert_close(found, lm(PREFIXES)[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("flag", [None, "no_bias_kv", "no_extra_kv", "decoder_learned_pos"])
@torch.no_grad()
def test_an_encoder_that_hides_later_words_is_the_forward_tower(
    make_cfg: Any, task: Any, make_cloze: Any, save_lm: Any, flag: str | None
) -> None:
    lm = make_cloze(**({flag: True} if flag else {}))
    model = TransformerLMFusion.build_model(make_cfg(src_fusion="initialise", src_lm=str(save_lm(lm))), task).eval()
    rows = torch.tensor([[5, 9, 4, 11, 2], [6, 7, 8, 21, 2]])
    forward, _ = lm.tower_states(rows, RowLayout(rows.eq(1)))
    expected = lm.join.fwd_layer_norm(forward[-1])
    torch.testing.assert_close(causal_states(model.encoder, rows), expected, rtol=0, atol=1e-5)
    seen = model.encoder(rows, torch.tensor([5, 5]))["encoder_out"][0].transpose(0, 1)
    assert (seen[:, 0] - expected[:, 0]).abs().max() > 1e-3, "in the model every word sees all others"


def test_fewer_layers_are_the_lowest(make_model: Any, tgt_lm: Any) -> None:
    lm = load_lm(tgt_lm)
    assert len(lm.stack().layers) == 2
    model = make_model("none", "initialise", tgt_initialise_layers=1)
    assert len(model.decoder.layers) == 1
    assert torch.equal(model.decoder.layers[0].fc1.weight, lm.layers[0].ffn.fc1.weight)


def test_every_layer_starts_from_the_lms_although_layer_drop_leaves_some_out_in_training(
    make_model: Any, src_lm: Any, tgt_lm: Any
) -> None:
    model = make_model("initialise", "initialise", encoder_layerdrop=0.9, decoder_layerdrop=0.9)
    for stack, file in ((model.encoder, src_lm), (model.decoder, tgt_lm)):
        for number, weights in enumerate(load_lm(file).stack().layers):
            assert torch.equal(stack.layers[number].fc1.weight, weights["fc1.weight"])


def test_an_output_that_cannot_be_the_lms_is_refused(make_model: Any, tgt_lm: Any) -> None:
    """One matrix cannot start from two, nor an adaptive softmax from a matrix of all symbols."""
    assert load_lm(tgt_lm).stack().output is not None
    with pytest.raises(InputError, match="SHDEMB"):
        make_model("none", "initialise", share_decoder_input_output_embed=True)
    with pytest.raises(InputError, match="--adaptive-softmax-cutoff"):
        make_model("none", "initialise", adaptive_softmax_cutoff=[4, 7])


def test_what_is_trained_is_fairseqs_transformer_without_the_lm(make_model: Any) -> None:
    model = make_model("initialise", "initialise")
    assert isinstance(model.encoder, TransformerEncoderBase)
    assert isinstance(model.decoder, TransformerDecoderBase)
    assert not any("representation" in name for name in model.state_dict())
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert model.encoder.embed_tokens.embedding_dim == model.decoder.embed_tokens.embedding_dim == 16


def test_attention_to_the_encoder_is_new_or_copied(make_model: Any) -> None:
    for start, equal in ((None, False), ("new", False), ("copied", True)):
        model = make_model("initialise", "initialise", tgt_initialise_cross=start)
        for layer in model.decoder.layers:
            for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                own, cross = (getattr(module, name).weight for module in (layer.self_attn, layer.encoder_attn))
                assert torch.equal(own, cross) == equal
            assert layer.encoder_attn.out_proj.weight is not layer.self_attn.out_proj.weight


def test_another_dictionary_gets_the_rows_of_its_symbols(make_model: Any, src_lm: Any, tgt_lm: Any) -> None:
    model = make_model("initialise", "initialise")
    words = load_lm(src_lm).token_embedding.weight
    assert torch.equal(model.encoder.embed_tokens.weight[4:], words[4:])
    assert not model.encoder.embed_tokens.weight[1].any()


@torch.no_grad()
def test_the_padding_of_a_stack_is_zero_whatever_the_lms_is(
    make_cfg: Any, task: Any, make_cloze: Any, save_lm: Any
) -> None:
    lm = make_cloze()
    lm.token_embedding.weight[1] = 3.0
    model = TransformerLMFusion.build_model(make_cfg(src_fusion="initialise", src_lm=str(save_lm(lm))), task)
    assert not model.encoder.embed_tokens.weight[1].any()
    assert torch.equal(model.encoder.embed_tokens.weight[4:], lm.token_embedding.weight[4:])


def test_a_gradient_reaches_everything(make_model: Any, net_input: Any) -> None:
    model = make_model("initialise", "initialise").train()
    model(**net_input)[0].sin().sum().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name


@pytest.mark.parametrize(
    ("src", "tgt", "flags", "message"),
    [
        ("initialise", "none", {"src_initialise_layers": 9}, "--src-initialise-layers 9"),
        ("initialise", "none", {"src_initialise_layers": 0}, "--src-initialise-layers 0"),
        ("none", "initialise", {"tgt_initialise_cross": "old"}, "--tgt-initialise-cross old"),
        ("none", "initialise", {"tgt_initialise_cross": "copied"}, "encoder-embed-dim"),
        ("initialise", "none", {"share_all_embeddings": True}, "--share-all-embeddings"),
        ("initialise", "none", {"encoder_embed_path": "vectors.txt"}, "--encoder-embed-path"),
        ("initialise", "none", {"src_lm_dropout": 0.1}, "--src-lm-dropout"),
    ],
)
def test_what_cannot_be_is_refused(make_model: Any, src: str, tgt: str, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model(src, tgt, **flags)


def test_inspect_says_what_it_started_from(make_cell: Any, task: Any, tmp_path: Any) -> None:
    cfg = make_cell("initialise", "none")
    model = TransformerLMFusion.build_model(cfg, task)
    state = {"cfg": {"model": {**vars(cfg), "_name": "transformer_lmfusion"}}, "model": model.state_dict()}
    torch.save({"args": None, **state}, tmp_path / "model.pt")
    found = inspect_checkpoint(tmp_path / "model.pt")
    assert found.language_models == []
    assert [(start["side"], start["kind"]) for start in found.starts] == [("source", "cloze language model")]
    assert found.frozen == 0
