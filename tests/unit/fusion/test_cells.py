"""The whole table, 3 x 3 fusions, with and without SHDEMB: exactly which tensors each cell trains."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq.models.transformer import TransformerConfig, TransformerModelBase
from torch import Tensor, nn

from lmfusion.fusion.model import TransformerLMFusion
from lmfusion.lm.transformer.layers import FeedForward

FUSIONS = ("none", "elmo", "finetune")
SHDEMB = "share_decoder_input_output_embed"
CELLS = [(src, tgt, False) for src in FUSIONS for tgt in FUSIONS] + [(src, "none", True) for src in FUSIONS]
every_cell = pytest.mark.parametrize(("src", "tgt", "tied"), CELLS, ids=lambda value: str(value))

# The tiny LMs have two blocks a tower; a block has these tensors.
BLOCK = (
    *("layer_norm.weight", "layer_norm.bias", "self_attn.in_proj.weight", "self_attn.in_proj.bias"),
    *("self_attn.out_proj.weight", "self_attn.out_proj.bias", "ffn.layer_norm.weight", "ffn.layer_norm.bias"),
    *("ffn.fc1.weight", "ffn.fc1.bias", "ffn.fc2.weight", "ffn.fc2.bias"),
)
BIAS_KV = ("self_attn.bias_k", "self_attn.bias_v")
JOIN = (
    *("fwd_layer_norm.weight", "fwd_layer_norm.bias", "bwd_layer_norm.weight", "bwd_layer_norm.bias"),
    *("q_proj.weight", "q_proj.bias", "kv_proj.weight", "kv_proj.bias", "out_proj.weight", "out_proj.bias"),
    *("ffn.layer_norm.weight", "ffn.layer_norm.bias", "ffn.fc1.weight", "ffn.fc1.bias", "ffn.fc2.weight"),
    "ffn.fc2.bias",
)


def lm_names(side: str) -> set[str]:
    if side == "decoder":
        blocks = {f"layers.{number}.{name}" for number in (0, 1) for name in BLOCK}
        return {"embed.tokens.weight"} | blocks
    towers = {
        f"{tower}_layers.{number}.{name}"
        for tower in ("forward", "backward")
        for number in (0, 1)
        for name in (*BLOCK, *BIAS_KV)
    }
    return {"embed.tokens.weight"} | towers | {f"join.{name}" for name in JOIN}


def expected_names(src: str, tgt: str, tied: bool, cfg: Any, task: Any) -> set[str]:
    """fairseq's own transformer of that size, its input embeddings replaced."""
    plain_cfg = TransformerConfig.from_namespace(cfg)
    plain_cfg.share_decoder_input_output_embed = tied
    names = {name for name, _ in TransformerModelBase.build_model(plain_cfg, task).named_parameters()}
    for side, fusion in (("encoder", src), ("decoder", tgt)):
        prefix = f"{side}.embed_tokens.representation."
        if fusion != "none":
            names.remove(f"{side}.embed_tokens.weight")
            names.add(prefix + "projection.weight")
        if fusion == "elmo":
            names |= {prefix + "mix.weights", prefix + "mix.gamma"}
        if fusion == "finetune":
            names |= {f"{prefix}lm.{name}" for name in lm_names(side)}
    return names


def trainable(model: nn.Module) -> set[str]:
    return {name for name, parameter in model.named_parameters() if parameter.requires_grad}


@every_cell
def test_exactly_these_tensors_train(
    make_model: Any, make_cell: Any, task: Any, src: str, tgt: str, tied: bool
) -> None:
    model = make_model(src, tgt, **{SHDEMB: tied})
    assert trainable(model) == expected_names(src, tgt, tied, make_cell(src, tgt), task)


@pytest.mark.parametrize(("src", "tgt"), [("elmo", "none"), ("none", "elmo"), ("elmo", "elmo")])
def test_affine_adds_scale_and_shift_of_its_side(make_model: Any, src: str, tgt: str) -> None:
    flags = {f"{side}_elmo_affine": True for side, fusion in (("src", src), ("tgt", tgt)) if fusion == "elmo"}
    added = trainable(make_model(src, tgt, **flags)) - trainable(make_model(src, tgt))
    sides = [side for side, fusion in (("encoder", src), ("decoder", tgt)) if fusion == "elmo"]
    prefix = "embed_tokens.representation.mix.layer_norm"
    assert added == {f"{side}.{prefix}.{name}" for side in sides for name in ("weight", "bias")}


@every_cell
def test_one_update_changes_exactly_the_trainable_tensors(
    make_model: Any, net_input: dict[str, Tensor], src: str, tgt: str, tied: bool
) -> None:
    model = make_model(src, tgt, **{SHDEMB: tied}).train()
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2, eps=1e-30)
    logits = model(**net_input)[0]
    F.cross_entropy(logits.flatten(0, 1), net_input["prev_output_tokens"].flatten(), ignore_index=1).backward()
    optimizer.step()
    changed = {name for name, parameter in model.named_parameters() if not torch.equal(parameter, before[name])}
    # A softmax does not move with a constant on all keys: this bias of fairseq's has no gradient but noise.
    indifferent = {name for name in before if name.endswith("k_proj.bias")}
    assert changed - indifferent == trainable(model) - indifferent
    assert changed <= trainable(model)
    frozen = [p for name, p in model.named_parameters() if name not in trainable(model)]
    assert all(parameter.grad is None for parameter in frozen)
    assert len(frozen) == sum(
        len(lm_names(side)) for side, fusion in (("encoder", src), ("decoder", tgt)) if fusion == "elmo"
    )


@every_cell
def test_frozen_lms_stay_in_eval_mode_while_the_rest_trains(
    make_model: Any, net_input: dict[str, Tensor], src: str, tgt: str, tied: bool
) -> None:
    """With the model's own dropout at 0, only a language model's dropout could tell two passes apart."""
    model = make_model(src, tgt, **{SHDEMB: tied}).train()
    is_random = not torch.equal(model(**net_input)[0], model(**net_input)[0])
    assert is_random == ("finetune" in (src, tgt))


def test_shdemb_ties_the_decoder_input_and_output_embeddings(make_model: Any) -> None:
    for src in FUSIONS:
        decoder = make_model(src, "none", **{SHDEMB: True}).decoder
        assert decoder.output_projection.weight is decoder.embed_tokens.weight
        assert make_model(src, "none").decoder.output_projection.weight is not decoder.embed_tokens.weight


def test_shared_ties_all_three(make_cfg: Any, task: Any) -> None:
    task.target_dictionary = task.source_dictionary
    model = TransformerLMFusion.build_model(make_cfg(share_all_embeddings=True), task)
    assert model.encoder.embed_tokens.weight is model.decoder.embed_tokens.weight
    assert model.decoder.output_projection.weight is model.decoder.embed_tokens.weight


def test_without_fusion_it_is_fairseqs_transformer(make_cfg: Any, task: Any, net_input: dict[str, Tensor]) -> None:
    cfg = make_cfg()
    ours = TransformerLMFusion.build_model(cfg, task).eval()
    plain = TransformerModelBase.build_model(TransformerConfig.from_namespace(cfg), task).eval()
    plain.load_state_dict(ours.state_dict())
    # Not bit for bit: on some processors lmfusion/kernels/matrix_product.py takes a faster library's products.
    assert torch.allclose(ours(**net_input)[0], plain(**net_input)[0], rtol=0, atol=5e-6)


def test_lm_dropouts_of_a_side_can_be_set(make_model: Any) -> None:
    rates = {"lm_dropout": 0.3, "lm_attention_dropout": 0.25, "lm_relu_dropout": 0.0}
    model = make_model("finetune", "finetune", **{f"src_{name}": rate for name, rate in rates.items()})
    source, target = model.encoder.embed_tokens.lm, model.decoder.embed_tokens.lm
    assert [source.config[name] for name in ("dropout", "attention_dropout", "activation_dropout")] == [0.3, 0.25, 0.0]
    assert [target.config[name] for name in ("dropout", "attention_dropout", "activation_dropout")] == [0.1, 0.1, 0.05]
    block = source.backward_layers[1]
    assert (block.dropout, block.self_attn.dropout, block.ffn.activation_dropout) == (0.3, 0.25, 0.0)


@pytest.mark.parametrize("cell", [("finetune", "none"), ("none", "finetune"), ("elmo", "none")], ids=" ".join)
def test_checkpoint_activations_reach_the_layers_of_a_trained_lm(
    make_cell: Any, task: Any, net_input: Any, monkeypatch: pytest.MonkeyPatch, cell: tuple[str, str]
) -> None:
    """Each block of the LM runs twice in a step, and gradients do not change; a frozen LM runs once."""
    runs = []
    original = FeedForward.forward
    monkeypatch.setattr(FeedForward, "forward", lambda self, x: runs.append(self) or original(self, x))
    found = []
    for again in (False, True):
        torch.manual_seed(1)
        model = TransformerLMFusion.build_model(make_cell(*cell, checkpoint_activations=again, dropout=0.1), task)
        runs.clear()
        torch.manual_seed(2)
        model.train()(**net_input)[0].sin().sum().backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        found.append((len(runs), len(set(runs)), gradients))
    (once, blocks, expected), (twice, _, gradients) = found
    joins = int("elmo" in cell or cell[0] == "finetune")  # the joining block is no layer of a tower
    assert once == blocks
    assert twice == (once if "elmo" in cell else 2 * (blocks - joins) + joins)
    for name, gradient in expected.items():
        torch.testing.assert_close(gradients[name], gradient, msg=name)


@pytest.mark.parametrize("saving", ["checkpoint_activations", "offload_activations"])
@pytest.mark.parametrize("cell", [("finetune", "none"), ("finetune", "finetune")], ids=" ".join)
def test_what_saves_memory_leaves_gradients_as_they_are_while_a_trained_lm_rests(
    make_cell: Any, task: Any, net_input: Any, cell: tuple[str, str], saving: str
) -> None:
    """The LM is as wide as the model, so that nothing in front of the first layer is trained."""
    resting = {"src_lm_freeze_updates": 2, "encoder_embed_dim": 16, "dropout": 0.1}
    if cell[1] == "finetune":
        resting |= {f"decoder_{name}_dim": 16 for name in ("embed", "input", "output")} | {"tgt_lm_freeze_updates": 2}
    found = []
    for flags in ({}, {saving: True}):
        torch.manual_seed(1)
        model = TransformerLMFusion.build_model(make_cell(*cell, **resting, **flags), task).train()
        torch.manual_seed(2)
        model(**net_input)[0].sin().sum().backward()
        found.append({name: p.grad for name, p in model.named_parameters() if p.grad is not None})
    expected, gradients = found
    assert [name for name in expected if name.startswith("encoder.layers.0.")]
    torch.testing.assert_close(gradients, expected)
