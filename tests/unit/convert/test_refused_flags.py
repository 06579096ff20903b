"""What ``lmfusion convert`` refuses of flags: unknown, contradicting, missing, of no use; what it asks for by name."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
import torch

from lmfusion.convert import Inputs, convert
from lmfusion.errors import InputError


@pytest.mark.parametrize("arch", ["fconv_wmt_en_de", "lstm"])
def test_unknown_architecture(make: ModuleType, cloze: Any, save: Any, refused: Any, arch: str) -> None:
    message = refused(save(cloze, {**make.CLOZE, "arch": arch}))
    assert f"has the architecture {arch}, which is not known" in message
    assert "bi_transformer_lm_big, " in message
    assert "--arg arch=NAME" in message


def test_architecture_under_another_name(make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str]) -> None:
    path = save(cloze, {**make.CLOZE, "arch": "our_bilm"})
    converted = convert(path, Inputs(dictionary=dicts["src"], args={"arch": "bi_transformer_lm"}))
    assert converted.checkpoint["cfg"]["model"]["_name"] == "bi_transformer_lm"


def test_flags_that_are_not_those_of_the_weights(make: ModuleType, cloze: Any, save: Any, refused: Any) -> None:
    deeper = refused(save(cloze, {**make.CLOZE, "decoder_layers": 3}))
    assert "missing: decoder.backward_layers.2.fc1.bias, " in deeper
    zero_pair = refused(save(cloze, {**make.CLOZE, "no_bias_kv": True}))
    assert "not expected: decoder.backward_layers.0.self_attn.bias_k, " in zero_pair
    one_tower = refused(save(cloze, {**make.CLOZE, "single_tower": True}))
    assert (
        "different from what they must be copies of: decoder.backward_layers.0.fc1.bias (of decoder.forward"
        in one_tower
    )


@pytest.mark.parametrize(
    "flags",
    [
        {"adaptive_input": True},
        {"adaptive_softmax_cutoff": "10000,20000"},
        {"character_embeddings": True},
        {"segment_embeddings": True},
        {"output_dictionary_size": 5000},
        {"tie_adaptive_weights": True},
        {"next_sentence_prediction": True},
        {"activation_fn": "gelu"},
    ],
    ids=str,
)
def test_what_has_no_counterpart(make: ModuleType, cloze: Any, save: Any, refused: Any, flags: dict[str, Any]) -> None:
    ((name, value),) = flags.items()
    assert f"was trained with {name}={value!r}, which lmfusion has no counterpart of" in refused(
        save(cloze, {**make.CLOZE, **flags})
    )


def test_what_cannot_be_seen_is_asked_for_by_flag(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "elmo:/gone/bilm.pt", "elmo_affine": True}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    dictionaries = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    message = refused(path, *dictionaries)
    assert "the source language model in" in message
    assert "decoder_attention_heads and double_final_heads are not known and cannot be seen in the weights" in message
    assert "by --src-lm (or --lm)" in message
    message = refused(path, *dictionaries, "--src-lm-arg", "decoder_attention_heads=2")
    assert "double_final_heads is not known" in message
    assert "say --src-lm-arg double_final_heads=VALUE" in message
    given = {name: value for name, value in args.items() if name != "encoder_attention_heads"}
    weights = make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    message = refused(save(weights, given), *dictionaries)
    assert "encoder_attention_heads is not known" in message
    assert "Give them by --arg encoder_attention_heads=VALUE" in message


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--lm", "x.pt"], "--lm would be ignored: "),
        (["--src-dict", "d.txt"], "--src-dict/--tgt-dict would be ignored"),
        (["--src-lm-arg", "a=1"], "--src-lm-arg/--tgt-lm-arg would be ignored"),
        (["--tgt-lm", "{own}"], "--src-lm/--tgt-lm would be ignored"),
        (["--arg", "encoder_layers=3"], "--arg encoder_layers would be ignored"),
        (["--arg", "heads"], "'heads' is no NAME=VALUE"),
    ],
)
def test_flags_that_would_be_ignored(
    make: ModuleType, cloze: Any, save: Any, dicts: dict[str, str], refused: Any, flags: list[str], reason: str
) -> None:
    path = save(cloze, make.CLOZE)
    assert reason in refused(path, "--dict", dicts["src"], *(word.format(own=path) for word in flags))


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("double_final_heads", "no", "True or False"),
        ("decoder_attention_heads", "2", "a whole number from 1 to 1000000"),
        ("decoder_layers", 10**9, "a whole number from 1 to"),
        ("decoder_attention_heads", True, "a whole number from 1 to 1000000"),
        ("dropout", -0.1, "a number from 0 to 1"),
        ("dropout", float("inf"), "a number from 0 to 1"),
        ("dropout", True, "a number from 0 to 1"),
        ("dropout", 5.0, "a number from 0 to 1"),
        ("relu_dropout", 1.01, "a number from 0 to 1"),
    ],
)
def test_flags_of_another_type(
    make: ModuleType, cloze: Any, save: Any, refused: Any, name: str, value: Any, expected: str
) -> None:
    assert f"{name} is {value!r}, where {expected}" in refused(save(cloze, {**make.CLOZE, name: value}))


@pytest.mark.parametrize(("name", "value"), [("source_lang", 5), ("target_lang", ["de"]), ("dropout", 5.0)])
def test_settings_of_a_translation_model_of_another_type(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any, name: str, value: Any
) -> None:
    weights = make.seq2seq(make.SEQ2SEQ, {}, {"src": 24, "tgt": 21})
    path = save(weights, {**make.SEQ2SEQ, name: value})
    assert f"{name} is {value!r}" in refused(path, "--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"])


def test_heads_that_do_not_divide_the_channels(make: ModuleType, cloze: Any, save: Any, refused: Any) -> None:
    args = {**make.CLOZE, "decoder_attention_heads": 16, "double_final_heads": True}
    assert "32 attention heads (decoder_attention_heads) do not divide 16 channels" in refused(save(cloze, args))


def test_file_without_any_flags(make: ModuleType, save: Any, dicts: dict[str, str], refused: Any) -> None:
    """Everything that its weights do not tell is asked for."""
    weights = make.language_model(make.CLOZE, 24)
    path = save(weights, {})
    assert "arch is not known" in refused(path)
    message = refused(path, "--dict", dicts["src"], "--arg", "arch=bi_transformer_lm")
    assert "decoder_attention_heads and double_final_heads are not known" in message
    said = {"arch": "bi_transformer_lm", "decoder_attention_heads": 2, "double_final_heads": False}
    unsaid = convert(path, Inputs(dictionary=dicts["src"], args=said)).model.state_dict()
    known = convert(save(weights, make.CLOZE), Inputs(dictionary=dicts["src"])).model.state_dict()
    assert list(unsaid) == list(known)
    assert all(torch.equal(unsaid[name], known[name]) for name in known)


def test_a_model_without_any_flags_is_not_guessed_at(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any
) -> None:
    """SRC-FT: whether the LM read a leading </s> is nowhere in the weights."""
    flags = {**make.SEQ2SEQ, "encoder_embed_path": "bilm:/gone/bilm.pt", "bilm_mask_last_state": "full"}
    weights = make.seq2seq(flags, {"src": make.CLOZE}, {"src": 24, "tgt": 21})
    dictionaries = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    path = save(weights, {})
    lm = {"decoder_attention_heads": 2, "double_final_heads": False}
    said = {name: flags[name] for name in ("arch", "encoder_embed_path", "encoder_attention_heads")}
    for part in ("encoder", "decoder"):
        names = ("attention_heads", "normalize_before", "learned_pos", "embed_scale")
        said.update({f"{part}_{name}": flags[f"{part}_{name}"] for name in names})
        said[f"no_{part[:3]}_token_positional_embeddings"] = False
    words = [word for name, value in said.items() for word in ("--arg", f"{name}={value}")]
    words += [word for name, value in lm.items() for word in ("--src-lm-arg", f"{name}={value}")]
    assert "bilm_add_bos is not known" in refused(path, *dictionaries, *words)
    wrong = refused(path, *dictionaries, *words, "--arg", "bilm_add_bos=False", "--arg", "bilm_mask_last_state=curr")
    assert "bilm_mask_last_state is 'curr'" in wrong
    said.update({"bilm_add_bos": False, "bilm_mask_last_state": "full"})
    inputs = Inputs(dictionaries=dicts, args=said, lm_args={"src": lm})
    unsaid = convert(path, inputs).checkpoint["cfg"]["model"]["src_lm_config"]
    del said["encoder_embed_scale"]
    with pytest.raises(InputError, match="encoder_embed_scale is not known"):
        convert(path, inputs)
    known = convert(save(weights, flags), Inputs(dictionaries=dicts, lm_args={"src": lm})).checkpoint["cfg"]["model"]
    readings = [json.loads(description)["lm"]["reading"] for description in (unsaid, known["src_lm_config"])]
    assert readings[0] == readings[1]
    assert readings[0]["top"] == "narrow"


@pytest.mark.parametrize(
    ("word", "name"),
    [("--arg", "bilm_mask_last_sate"), ("--arg", "activation_dropout"), ("--src-lm-arg", "no_bias_vk")],
)
def test_flags_that_nothing_reads(
    make: ModuleType, save: Any, dicts: dict[str, str], refused: Any, word: str, name: str
) -> None:
    args = {**make.SEQ2SEQ, "encoder_embed_path": "bilm:/gone/bilm.pt"}
    path = save(make.seq2seq(args, {"src": make.CLOZE}, {"src": 24, "tgt": 21}), args)
    words = ["--src-dict", dicts["src"], "--tgt-dict", dicts["tgt"]]
    words += ["--src-lm-arg", "decoder_attention_heads=2", "--src-lm-arg", "double_final_heads=False"]
    assert f"{word} {name} would be ignored" in refused(path, *words, word, f"{name}=False")
