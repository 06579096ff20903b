"""Flags of the language models that contradict each other, or of which one would be ignored."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
from fairseq.data import Dictionary, TruncatedDictionary
from fairseq.tasks.language_modeling import LanguageModelingTask

from lmfusion.errors import InputError
from lmfusion.lm.causal import CausalLM, UniTransformerLanguageModel
from lmfusion.lm.cloze import BiTransformerLanguageModel
from lmfusion.lm.transformer.config import CausalLMConfig, ClozeLMConfig


@pytest.mark.parametrize("targets", [("future",), ("past",), ("self", "future"), ("self", "past")], ids=str)
def test_target_sets_that_make_no_cloze_lm(make_cloze: Any, targets: tuple[str, ...]) -> None:
    given = " ".join(f"--{target}-target" for target in targets)
    with pytest.raises(InputError, match=f"cannot be trained with {given}: give --self-target"):
        make_cloze(targets=targets)


@pytest.mark.parametrize("targets", [["self"], ["future", "past"], ["past"]], ids=str)
def test_target_sets_that_make_no_causal_lm(dictionary: Dictionary, targets: list[str]) -> None:
    task = SimpleNamespace(targets=targets, target_dictionary=dictionary)
    given = " ".join(f"--{target}-target" for target in targets)
    with pytest.raises(InputError, match=f"would see what {given} asks for: .* train bi_transformer_lm"):
        UniTransformerLanguageModel.build_model(CausalLMConfig(), task)


def test_a_symbol_in_front_of_two_targets(dictionary: Dictionary) -> None:
    """fairseq puts it in front of a target, not of a list of them."""
    flags = {"future_target": True, "past_target": True, "sample_break_mode": "eos", "add_bos_token": True}
    task = LanguageModelingTask(Namespace(**flags), dictionary, targets=["future", "past"])
    with pytest.raises(InputError, match="--add-bos-token"):
        BiTransformerLanguageModel.build_model(ClozeLMConfig(), task)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"no_extra_kv": True, "no_bias_kv": True}, "--no-extra-kv leaves nothing for --no-bias-kv"),
        ({"linear_final_layer_bias": True}, "--linear-final-layer-bias needs --linear-final-layer"),
        ({"linear_final_layer": True, "double_final_heads": True}, "--double-final-heads belongs to the attention"),
        ({"linear_final_layer": True, "concat_final_q": True}, "--concat-final-q belongs to the attention"),
        ({"targets": ("future", "past"), "double_final_heads": True}, "--double-final-heads belongs to the attention"),
        ({"targets": ("future", "past"), "concat_final_q": True}, "--concat-final-q belongs to the attention"),
    ],
)
def test_flag_that_would_be_ignored(make_cloze: Any, flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        make_cloze(**flags)


@pytest.mark.parametrize("flags", [{}, {"double_final_heads": True}], ids=["towers", "join"])
def test_heads_must_divide_the_channels(make_cloze: Any, flags: dict[str, Any]) -> None:
    heads = 16 if flags else 5
    said = r"--decoder-attention-heads 5 do not divide the 16 channels|\d+ attention heads do not divide 16 channels"
    with pytest.raises(InputError, match=said):
        make_cloze(decoder_attention_heads=heads, **flags)


@pytest.mark.parametrize("kind", ["make_cloze", "make_causal"])
def test_a_model_has_layers(request: pytest.FixtureRequest, kind: str) -> None:
    with pytest.raises(InputError, match="--decoder-layers 0: give 1 or more"):
        request.getfixturevalue(kind)(decoder_layers=0)


def test_the_dictionary_is_used_as_a_whole(make_causal: Any, dictionary: Dictionary) -> None:
    config = make_causal().config
    with pytest.raises(InputError, match=r"--output-dictionary-size 12 leaves out symbols of the dictionary's \d+"):
        CausalLM(config, TruncatedDictionary(dictionary, 12))


def test_pair_of_lms_has_no_top_state(make_cloze: Any) -> None:
    import torch

    with pytest.raises(InputError, match="no joining block and so no single top state: use --src-fusion elmo"):
        make_cloze(targets=("future", "past")).top_state(torch.tensor([[2, 5, 2]]))
