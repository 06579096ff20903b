"""Fine-tuning a part of a language model: lower layers frozen, a rate of its own, a frozen beginning."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from fairseq import optim
from fairseq.optim.adam import FairseqAdamConfig
from omegaconf import OmegaConf
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.fusion.model import TransformerLMFusion

LOWER_HALF = ("embed.", "forward_layers.0.", "backward_layers.0.")


def lm_weights(model: TransformerLMFusion, side: str = "encoder") -> dict[str, Tensor]:
    lm = getattr(model, side).embed_tokens.lm
    return {name: parameter.detach().clone() for name, parameter in lm.named_parameters()}


def train(model: TransformerLMFusion, net_input: dict[str, Tensor], updates: range) -> None:
    """As fairseq's trainer does, with weight decay."""
    model.train()
    cfg = OmegaConf.create({**vars(FairseqAdamConfig(lr=[0.01], tpu=False, weight_decay=0.1)), "_name": "adam"})
    optimizer = optim.build_optimizer(cfg, [p for p in model.parameters() if p.requires_grad])
    for update in updates:
        model.set_num_updates(update)
        optimizer.zero_grad()
        logits = model(**net_input)[0]
        F.cross_entropy(logits.flatten(0, 1), net_input["prev_output_tokens"].flatten(), ignore_index=1).backward()
        optimizer.step()


@pytest.mark.parametrize("frozen", [None, 0])
def test_by_default_every_layer_of_the_lm_is_trained(
    make_model: Any, net_input: dict[str, Tensor], frozen: int | None
) -> None:
    model = make_model("finetune", "none", src_lm_freeze_layers=frozen)
    before = lm_weights(model)
    train(model, net_input, range(1))
    unmoved = {name for name, weight in lm_weights(model).items() if torch.equal(weight, before[name])}
    assert unmoved == set()


def test_frozen_lower_layers_keep_their_weights(make_model: Any, net_input: dict[str, Tensor]) -> None:
    """One of two: the embeddings and the first block of both towers, and nothing else."""
    model = make_model("finetune", "none", src_lm_freeze_layers=1)
    before = lm_weights(model)
    train(model, net_input, range(2))
    unmoved = {name for name, weight in lm_weights(model).items() if torch.equal(weight, before[name])}
    assert unmoved == {name for name in before if name.startswith(LOWER_HALF)}
    assert {name.split(".")[0] for name in unmoved} == {"embed", "forward_layers", "backward_layers"}
    assert unmoved == {name for name, p in model.encoder.embed_tokens.lm.named_parameters() if not p.requires_grad}


def test_all_layers_of_a_cloze_lm_frozen_leave_the_joining_block(make_model: Any) -> None:
    lm = make_model("finetune", "none", src_lm_freeze_layers=2).encoder.embed_tokens.lm
    assert {name.split(".")[0] for name, p in lm.named_parameters() if p.requires_grad} == {"join"}


@pytest.mark.parametrize(("side", "count"), [("src", 3), ("src", -1), ("tgt", 3)])
def test_more_layers_than_there_are_cannot_be_frozen(make_model: Any, side: str, count: int) -> None:
    fusions = ("finetune", "none") if side == "src" else ("none", "finetune")
    with pytest.raises(InputError, match=f"has 2 layers, and {count} of them cannot be frozen"):
        make_model(*fusions, **{f"{side}_lm_freeze_layers": count})


def test_a_causal_lm_frozen_as_a_whole_is_refused(make_model: Any) -> None:
    with pytest.raises(InputError, match="nothing of the language model would be trained"):
        make_model("none", "finetune", tgt_lm_freeze_layers=2)


@pytest.mark.parametrize(("fusions", "side"), [(("finetune", "none"), "encoder"), (("none", "finetune"), "decoder")])
def test_lm_is_frozen_for_the_first_updates(
    make_model: Any, net_input: dict[str, Tensor], fusions: tuple[str, str], side: str
) -> None:
    flag = {"encoder": "src", "decoder": "tgt"}[side] + "_lm_freeze_updates"
    model = make_model(*fusions, **{flag: 2})
    before, rest = lm_weights(model, side), model.decoder.output_projection.weight.detach().clone()
    train(model, net_input, range(2))
    assert all(torch.equal(weight, before[name]) for name, weight in lm_weights(model, side).items())
    assert not torch.equal(model.decoder.output_projection.weight, rest)
    train(model, net_input, range(2, 3))
    moved = {name for name, weight in lm_weights(model, side).items() if not torch.equal(weight, before[name])}
    assert moved == set(before)


def test_no_gradient_is_computed_for_a_frozen_beginning(make_model: Any, net_input: dict[str, Tensor]) -> None:
    model = make_model("finetune", "none", src_lm_freeze_updates=1).train()
    model.set_num_updates(0)
    model(**net_input)[0].sum().backward()
    assert all(p.grad is None for p in model.encoder.embed_tokens.lm.parameters())
    assert model.encoder.embed_tokens.representation.projection.weight.grad is not None


def test_the_lm_moves_in_proportion_to_its_rate(make_model: Any, net_input: dict[str, Tensor]) -> None:
    """Adam's first step has the length of the learning rate, whatever the gradient (here without noise of dropout)."""
    no_dropout = {"src_lm_dropout": 0.0, "src_lm_attention_dropout": 0.0, "src_lm_relu_dropout": 0.0}
    moves = {}
    for scale in (None, 0.1):
        torch.manual_seed(5)
        model = make_model("finetune", "none", src_lm_lr_scale=scale, **no_dropout)
        before = lm_weights(model)
        train(model, net_input, range(1))
        moves[scale] = {name: weight - before[name] for name, weight in lm_weights(model).items()}
    for name, move in moves[None].items():
        torch.testing.assert_close(moves[0.1][name], 0.1 * move, rtol=2e-3, atol=1e-7)
        assert move.abs().max() > 1e-3 or name.endswith("k_proj.bias")


def test_log_says_what_was_loaded_and_how_it_is_trained(make_model: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        model = make_model("finetune", "elmo", src_lm_lr_scale=0.1, src_lm_freeze_layers=1, src_lm_freeze_updates=500)
    lm = model.encoder.embed_tokens.lm
    total = sum(parameter.numel() for parameter in lm.parameters())
    trained = sum(parameter.numel() for parameter in lm.parameters() if parameter.requires_grad)
    assert 0 < trained < total
    said = [record.message for record in caplog.records if "language model:" in record.message]
    assert f"{total:,} parameters, {trained:,} of them trained with 0.1 times the learning rate, after the" in said[0]
    assert said[0].startswith(f"source language model: {len(list(lm.parameters()))} tensors, ")
    assert "first 500 updates, from " in said[0]
    assert said[0].endswith("source_lm.pt")
    assert said[1].startswith("target language model: ")
    assert "frozen, from " in said[1]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"src_lm_lr_scale": -0.5}, "--src-lm-lr-scale -0.5: give 0 or more"),
        ({"src_lm_lr_scale": float("nan")}, "--src-lm-lr-scale nan: give 0 or more"),
        ({"src_lm_lr_scale": float("inf")}, "--src-lm-lr-scale inf: give 0 or more"),
        ({"src_embed_scale": float("nan")}, "--src-embed-scale nan: give a number"),
        ({"src_lm_lr_scale": 0.0}, "--src-fusion elmo for a frozen one"),
        ({"src_lm_freeze_updates": -1}, "--src-lm-freeze-updates -1: give 0 or more"),
        ({"src_embed_scale": 2.0, "no_scale_embedding": True}, "--no-scale-embedding contradicts --src-embed-scale"),
        ({"decoder_output_dim": 4}, "--decoder-output-dim 4 would be ignored"),
    ],
)
def test_flags_that_make_no_sense_are_refused(make_model: Any, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_model("finetune", "none", **flags)


@pytest.mark.parametrize("flag", ["lm_lr_scale", "lm_freeze_layers", "lm_freeze_updates"])
@pytest.mark.parametrize("fusion", ["none", "elmo"])
def test_flags_of_finetuning_are_refused_elsewhere(make_model: Any, flag: str, fusion: str) -> None:
    with pytest.raises(InputError, match=f"--src-{flag.replace('_', '-')} would be ignored with --src-fusion {fusion}"):
        make_model(fusion, "none", **{f"src_{flag}": 1})


def test_learned_positions_are_refused_where_the_encoder_has_none(make_model: Any) -> None:
    with pytest.raises(InputError, match="--encoder-learned-pos would be ignored"):
        make_model("elmo", "none", encoder_learned_pos=True)
    make_model("finetune", "none", encoder_learned_pos=True)


def test_a_pair_of_lms_cannot_be_finetuned(make_cfg: Any, make_cloze: Any, save_lm: Any, task: Any) -> None:
    """It has no single top state; said when the model is built, not at the first batch."""
    pair = str(save_lm(make_cloze(targets=["future", "past"]), "pair.pt"))
    TransformerLMFusion.build_model(make_cfg(src_fusion="elmo", src_lm=pair), task)
    with pytest.raises(InputError, match="use --src-fusion elmo"):
        TransformerLMFusion.build_model(make_cfg(src_fusion="finetune", src_lm=pair), task)
