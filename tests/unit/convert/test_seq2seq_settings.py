"""What else a converted sequence-to-sequence model keeps: flags, limits, updates, what is trained and what is not."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from lmfusion.convert import Inputs, convert
from lmfusion.lm.freezing import state_fingerprint

SOURCE, PREFIX = [5, 9, 4, 11, 7, 2], [2, 6, 8, 4, 4]
ELMO_SRC, BILM_SRC = {"encoder_embed_path": "elmo:lm.pt"}, {"encoder_embed_path": "bilm:lm.pt"}
AFFINE = {"elmo_affine": True, "no_enc_token_positional_embeddings": True}
PAIR = {"self_target": False, "future_target": True, "past_target": True}


@pytest.mark.parametrize(
    ("lm", "masking", "idle"),
    [({}, False, None), ({}, "full", None), (PAIR, False, "lm.backward_layers")],
    ids=["token visible", "token hidden", "a pair: the forward tower"],
)
def test_every_trainable_weight_of_a_fine_tuned_lm_gets_a_gradient(
    make: ModuleType, save: Any, dicts: dict[str, str], lm: dict[str, Any], masking: Any, idle: str | None
) -> None:
    """DistributedDataParallel refuses a model in which one does not."""
    args = {**make.SEQ2SEQ, **BILM_SRC, "bilm_mask_last_state": masking}
    inputs = Inputs(dictionaries=dicts, lm=[save({}, {**make.CLOZE, **lm}, "lm.pt")])
    path = save(make.seq2seq(args, {"src": {**make.CLOZE, **lm}}, {"src": 24, "tgt": 21}), args)
    model = convert(path, inputs).model.train()
    model(torch.tensor([SOURCE]), torch.tensor([len(SOURCE)]), torch.tensor([PREFIX]))[0].square().sum().backward()
    trainable = {name for name, weight in model.named_parameters() if weight.requires_grad}
    assert not [n for n, weight in model.named_parameters() if n in trainable and weight.grad is None]
    names = set(dict(model.named_parameters())) - trainable
    assert all(f".{idle}." in name for name in names)
    assert bool(names) == (idle is not None)


def test_older_names_of_the_decoders_norms(make: ModuleType, save: Any, dicts: dict[str, str]) -> None:
    weights = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    older = dict(weights)
    for number, new in enumerate(("self_attn_layer_norm", "encoder_attn_layer_norm", "final_layer_norm")):
        older = {name.replace(new, f"layer_norms.{number}"): value for name, value in older.items()}
    found = [convert(save(some, make.SEQ2SEQ), Inputs(dictionaries=dicts)).model for some in (weights, older)]
    for (name, value), other in zip(found[0].state_dict().items(), found[1].state_dict().values(), strict=True):
        assert torch.equal(value, other), name


@pytest.mark.parametrize(("learned", "limit"), [(False, 40), (True, 28)])
def test_longest_source(make: ModuleType, save: Any, dicts: dict[str, str], learned: bool, limit: int) -> None:
    """The model's own limit; an LM of 30 positions inside only limits it where its positions are a table."""
    args, lm = {**make.SEQ2SEQ, **ELMO_SRC, **AFFINE}, {**make.CLOZE, "decoder_learned_pos": learned}
    path = save(make.seq2seq(args, {"src": lm}, {"src": 24, "tgt": 21}), args)
    model = convert(path, Inputs(dictionaries=dicts, lm=[save({}, lm, "lm.pt")])).model
    assert model.encoder.max_positions() == limit


def test_flags_of_the_task_are_kept(make: ModuleType, save: Any, dicts: dict[str, str]) -> None:
    weights = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    for left_pad in (True, False):
        path = save(weights, {**make.SEQ2SEQ, "left_pad_source": str(left_pad)})
        task = convert(path, Inputs(dictionaries=dicts)).checkpoint["cfg"]["task"]
        assert (task["source_lang"], task["target_lang"], task["left_pad_source"]) == ("en", "de", left_pad)
        assert task["data"] == str(Path(dicts["src"]).parent)


def test_defaults_of_the_task_are_fairseqs(make: ModuleType, save: Any, dicts: dict[str, str]) -> None:
    """Sources are padded at the left, targets at the right."""
    args = {name: value for name, value in make.SEQ2SEQ.items() if not name.startswith("left_pad")}
    path = save(make.seq2seq(args, {}, {"src": 24, "tgt": 21}), args)
    task = convert(path, Inputs(dictionaries=dicts)).checkpoint["cfg"]["task"]
    assert (task["left_pad_source"], task["left_pad_target"]) == (True, False)


def test_flags_of_the_model_updates_and_fingerprint_are_kept(
    make: ModuleType, save: Any, dicts: dict[str, str]
) -> None:
    said = {"max_source_positions": 50, "max_target_positions": 45, "relu_dropout": 0.05}
    args = {**make.SEQ2SEQ, **ELMO_SRC, **AFFINE, **said}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    converted = convert(path, Inputs(dictionaries=dicts, lm=[save({}, make.CLOZE, "lm.pt")]))
    config = converted.checkpoint["cfg"]
    for section in (config["model"], config["task"]):
        assert (section["max_source_positions"], section["max_target_positions"]) == (50, 45)
    dropouts = [config["model"][f"{name}dropout"] for name in ("", "attention_", "activation_", "src_elmo_")]
    assert dropouts == [0.1, 0.1, 0.05, 0.2]
    assert converted.checkpoint["optimizer_history"][-1]["num_updates"] == 11
    described = json.loads(config["model"]["src_lm_config"])
    assert described["fingerprint"] == state_fingerprint(converted.model.encoder.embed_tokens.lm)
    assert not converted.model.training


def test_half_precision_weights_are_taken_as_they_are(make: ModuleType, save: Any, dicts: dict[str, str]) -> None:
    args = {**make.SEQ2SEQ, "decoder_embed_scale": 2.0}
    weights = {name: value.half() for name, value in make.seq2seq(args, {}, {"src": 24, "tgt": 21}).items()}
    found = convert(save(weights, args), Inputs(dictionaries=dicts)).checkpoint["model"]
    assert {value.dtype for value in found.values() if value.is_floating_point()} == {torch.float32}
    assert torch.equal(found["encoder.layers.0.fc1.weight"], weights["encoder.layers.0.fc1.weight"].float())


@pytest.mark.parametrize("factors", [{}, {"encoder_embed_scale": 0.5}, {"decoder_embed_scale": 2.0}], ids=str)
def test_one_embedding_may_be_saved_once(
    make: ModuleType, save: Any, dicts: dict[str, str], factors: dict[str, float]
) -> None:
    """Tied or, for a factor, not: the copy that a file lacks is what it would be."""
    args = {**make.SEQ2SEQ, "share_all_embeddings": True, **factors}
    weights = make.seq2seq(args, {}, {"src": 24, "tgt": 24})
    once = {name: value for name, value in weights.items() if name != "decoder.embed_tokens.weight"}
    inputs = Inputs(dictionary=dicts["src"])
    twice, found = (convert(save(some, args), inputs).model.state_dict() for some in (weights, once))
    torch.testing.assert_close(found, twice, rtol=0, atol=0)


@pytest.mark.parametrize(("side", "factor"), [("encoder", "decoder_embed_scale"), ("decoder", "encoder_embed_scale")])
def test_one_embedding_of_both_sides_and_a_language_model_do_not_go_together(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any, side: str, factor: str
) -> None:
    """With a factor, too, which else makes two embeddings of it."""
    args = {**make.SEQ2SEQ, f"{side}_embed_path": "bilm:lm.pt"}
    lm = make.CLOZE if side == "encoder" else make.CAUSAL
    weights = make.seq2seq(args, {side.replace("encoder", "src").replace("decoder", "tgt"): lm}, {"src": 24, "tgt": 24})
    for more in ({factor: 2.0}, {}):
        path = save(weights, {**args, "share_all_embeddings": True, **more})
        assert "share_all_embeddings" in refused(path, "--dict", dicts["src"], "--lm", save({}, lm, "lm.pt"))
