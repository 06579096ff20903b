"""The paper's sizes: 353M and 190M parameters at 37,000 BPE types with tied embeddings (SPEC section 1)."""

from __future__ import annotations

from argparse import Namespace
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

TYPES = 37_000
CHANNELS, INNER, BLOCKS = 1024, 4096, 12


@pytest.fixture(scope="module")
def big_dictionary() -> Dictionary:
    dictionary = Dictionary()
    for number in range(TYPES):
        dictionary.add_symbol(f"t{number}")
    return dictionary


def build(arch: str, dictionary: Dictionary, target: str) -> Any:
    """The model of a named architecture, as fairseq builds it, without memory for its weights."""
    args = Namespace(share_decoder_input_output_embed=True)
    ARCH_CONFIG_REGISTRY[arch](args)
    model_class = ARCH_MODEL_REGISTRY[arch]
    config = model_class.__dataclass
    for name, spec in config.__dataclass_fields__.items():
        if not hasattr(args, name):
            setattr(args, name, spec.default)
    args.tokens_per_sample = args.max_target_positions = 512
    with torch.device("meta"):
        return model_class.build_model(args, SimpleNamespace(targets=[target], target_dictionary=dictionary))


def attention_size(width: int) -> int:
    """Four projections with biases."""
    return 4 * (width * width + width)


def feed_forward_size() -> int:
    """Two projections with biases, and a layer norm."""
    return 2 * CHANNELS * INNER + INNER + CHANNELS + 2 * CHANNELS


def size(model: Any) -> int:
    assert all(parameter.is_meta for parameter in model.parameters())
    return sum(parameter.numel() for parameter in model.parameters())


def test_big_cloze_lm_has_353_million_parameters(big_dictionary: Dictionary) -> None:
    found = size(build("bi_transformer_lm_big", big_dictionary, "self"))
    block = attention_size(CHANNELS) + 2 * CHANNELS + feed_forward_size()
    bias_key_and_value = 2 * CHANNELS
    join = attention_size(CHANNELS) + 2 * (2 * CHANNELS) + feed_forward_size()
    embeddings = (TYPES + 4) * CHANNELS
    assert found == embeddings + 2 * BLOCKS * (block + bias_key_and_value) + join
    assert round(found / 1e6) == 353


def test_big_causal_lm_has_190_million_parameters(big_dictionary: Dictionary) -> None:
    """189.05M: the paper's 190M is rounded up."""
    found = size(build("uni_transformer_lm_big", big_dictionary, "future"))
    block = attention_size(CHANNELS) + 2 * CHANNELS + feed_forward_size()
    assert found == (TYPES + 4) * CHANNELS + BLOCKS * block
    assert found / 1e6 == pytest.approx(190, abs=1)


def test_big_models_have_sixteen_heads(big_dictionary: Dictionary) -> None:
    """The number of heads changes no parameter count."""
    lm = build("bi_transformer_lm_big", big_dictionary, "self").decoder
    assert {block.self_attn.num_heads for block in [*lm.forward_layers, *lm.backward_layers]} == {16}
    assert lm.join.num_heads == 16
