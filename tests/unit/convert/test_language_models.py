"""Every variant of SPEC section 1, converted, against the independent calculation on the released format's weights."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
import torch

import lmfusion
from lmfusion.convert import Inputs, convert
from lmfusion.lm.transformer.layout import RowLayout

SENTENCE = [2, 5, 9, 4, 11, 7, 2]
CLOZE_VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "shared input and output embeddings": {"share_decoder_input_output_embed": True},
    "zero pair instead of a learned one": {"no_bias_kv": True},
    "single tower": {"single_tower": True},
    "linear join": {"linear_final_layer": True},
    "linear join with bias": {"linear_final_layer": True, "linear_final_layer_bias": True},
    "twice the heads in the join": {"double_final_heads": True},
    "concatenated query": {"concat_final_q": True},
    "concatenated query, twice the heads": {"concat_final_q": True, "double_final_heads": True},
    "learned positions": {"decoder_learned_pos": True},
    "no positions": {"no_token_positional_embeddings": True},
    "no positions, though learned": {"no_token_positional_embeddings": True, "decoder_learned_pos": True},
    "pair": {
        "arch": "bi_transformer_lm_big_non_cloze", "self_target": False, "future_target": True, "past_target": True,
    },
    "all targets": {"future_target": True, "past_target": True},
    "all at once": {
        "single_tower": True, "no_bias_kv": True, "concat_final_q": True, "double_final_heads": True,
        "share_decoder_input_output_embed": True, "decoder_learned_pos": True, "future_target": True,
        "past_target": True,
    },
}  # fmt: skip
CAUSAL_VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "shared input and output embeddings": {"share_decoder_input_output_embed": True},
    "learned positions": {"decoder_learned_pos": True},
    "no positions": {"no_dec_token_positional_embeddings": True},
    "smaller input and output embeddings": {"decoder_input_dim": 6, "decoder_output_dim": 10},
    "smaller shared embeddings": {
        "decoder_input_dim": 6, "decoder_output_dim": 6, "share_decoder_input_output_embed": True,
    },
}  # fmt: skip


def loaded(path: str, dicts: Any) -> Any:
    """Converted, written, loaded again."""
    convert(path, Inputs(dictionary=dicts["src"])).write(f"{path}.converted")
    return lmfusion.load_lm(f"{path}.converted")


@torch.no_grad()
@pytest.mark.parametrize("variant", CLOZE_VARIANTS.values(), ids=CLOZE_VARIANTS.keys())
def test_cloze_lm(make: ModuleType, reference: ModuleType, save: Any, dicts: Any, close: Any, variant: Any) -> None:
    args = {**make.CLOZE, **variant}
    weights = make.language_model(args, vocabulary=24)
    lm = loaded(save(weights, args), dicts)
    w = reference.double(weights)
    states, tops = reference.language_model(w, "decoder.", args, SENTENCE)
    tokens = torch.tensor([SENTENCE])
    forward, backward = lm.tower_states(tokens, RowLayout(tokens.eq(1)))
    close(forward[0][0], states[0])
    for number, (found_f, found_b) in enumerate(zip(forward[1:], backward[1:])):
        close(found_f[0], states[1 + 2 * number])
        close(found_b[0], states[2 + 2 * number])
    logits = lm(tokens)[0].flatten(0, -3)  # one row for each target
    for found, top in zip(logits, tops, strict=True):
        close(found, reference.softmax_input(w, "decoder.", args, top))
    if args["self_target"]:
        visible = reference.language_model(w, "decoder.", args, SENTENCE, hide_self=False)[1][0]
        close(lm.top_state(tokens)[0], visible)


@torch.no_grad()
@pytest.mark.parametrize("variant", CAUSAL_VARIANTS.values(), ids=CAUSAL_VARIANTS.keys())
def test_causal_lm(make: ModuleType, reference: ModuleType, save: Any, dicts: Any, close: Any, variant: Any) -> None:
    args = {**make.CAUSAL, **variant}
    weights = make.language_model(args, vocabulary=24)
    lm = loaded(save(weights, args), dicts)
    w = reference.double(weights)
    states, tops = reference.language_model(w, "decoder.", args, SENTENCE)
    tokens = torch.tensor([SENTENCE])
    for found, state in zip(lm.layer_states(tokens), states, strict=True):
        close(found[0], state)
    close(lm(tokens)[0][0], reference.softmax_input(w, "decoder.", args, tops[0]))


def test_half_precision_weights_are_taken_as_they_are(make: ModuleType, save: Any, dicts: Any) -> None:
    weights = {name: value.half() for name, value in make.language_model(make.CLOZE, 24).items()}
    lm = loaded(save(weights, make.CLOZE), dicts)
    assert torch.equal(lm.embed.tokens.weight, weights["decoder.embed_tokens.weight"].float())


def test_flags_of_a_checkpoint_older_than_its_options(make: ModuleType, save: Any, dicts: Any) -> None:
    """The released code takes the default of an option that a checkpoint does not know yet."""
    newer = ("double_final_heads", "concat_final_q", "single_tower", "no_bias_kv", "adaptive_input", "self_target")
    args = {name: value for name, value in make.CLOZE.items() if name not in newer}
    lm = loaded(save(make.language_model(make.CLOZE, 24), args), dicts)
    assert lm.targets == ["self"]
    assert not any(lm.config[name] for name in newer[:4])


def test_dropouts_updates_and_limits_are_kept(make: ModuleType, save: Any, dicts: Any) -> None:
    args = {**make.CLOZE, "input_dropout": 0.15, "sample_break_mode": "complete"}
    path = save(make.language_model(args, 24), args)
    converted = convert(path, Inputs(dictionary=dicts["src"]))
    config = converted.checkpoint["cfg"]["model"]
    dropouts = [config[f"{name}dropout"] for name in ("", "attention_", "activation_", "input_")]
    assert dropouts == [0.1, 0.1, 0.05, 0.15]
    assert converted.checkpoint["optimizer_history"][-1]["num_updates"] == 11
    assert not converted.model.training
    task = converted.checkpoint["cfg"]["task"]
    assert (task["sample_break_mode"], task["self_target"], task["future_target"]) == ("complete", True, False)
    assert loaded(path, dicts).max_positions() == 30
    learned = {**args, "decoder_learned_pos": True}
    # 30 positions, and a cloze sample is two longer than fairseq counts.
    assert loaded(save(make.language_model(learned, 24), learned), dicts).max_positions() == 28


@pytest.mark.parametrize(
    "arch", ["transformer_lm", "transformer_lm_big", "transformer_lm_wiki103", "transformer_lm_gbw"]
)
def test_causal_architectures_of_the_released_code(make: ModuleType, save: Any, dicts: Any, arch: str) -> None:
    path = save(make.language_model(make.CAUSAL, 24), {**make.CAUSAL, "arch": arch})
    config = convert(path, Inputs(dictionary=dicts["src"])).checkpoint["cfg"]
    assert config["model"]["_name"] == "uni_transformer_lm"
    assert config["task"]["sample_break_mode"] == "eos", "a sentence a sample, where nothing is said"


def test_older_flag_for_a_pair_of_towers(make: ModuleType, save: Any, dicts: Any) -> None:
    """exclude_self_target came before self_target."""
    args = {**make.CLOZE, "self_target": False, "future_target": True, "past_target": True}
    weights = make.language_model(args, 24)
    del args["self_target"]
    assert loaded(save(weights, {**args, "exclude_self_target": True}), dicts).targets == ["future", "past"]


def test_traces_of_sinusoids_show_that_there_are_positions(make: ModuleType, save: Any, dicts: Any) -> None:
    """An older file keeps them as embed_positions.weights; without flags they need not be said then."""
    weights = make.language_model(make.CLOZE, 24)
    weights["decoder.embed_positions.weights"] = weights.pop("decoder.embed_positions._float_tensor")
    said = {"arch": "bi_transformer_lm", "decoder_attention_heads": 2, "double_final_heads": False}
    converted = convert(save(weights, {}), Inputs(dictionary=dicts["src"], args=said))
    assert not converted.checkpoint["cfg"]["model"]["no_token_positional_embeddings"]
