"""Where recurrent language models drop, and what their cells start from, as the towers' dropout is tested."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from fairseq.data import Dictionary

from lmfusion.lm.recurrent import ElmoLM, RecurrentLM
from lmfusion.lm.recurrent_layers import Direction, RecurrentLMConfig
from lmfusion.lm.transformer.config import plain_config

ALMOST_ONE = 1 - 2**-16
C = 16
TOKENS = torch.tensor([[2, 5, 9, 4, 2]])


@pytest.mark.parametrize("kind", [RecurrentLM, ElmoLM])
@torch.no_grad()
def test_what_the_output_layer_reads_is_dropped_in_training(dictionary: Dictionary, shake: Any, kind: Any) -> None:
    """So nothing is left of the logits, which have no bias, whatever the cells' own biases make of dropped words."""
    config = RecurrentLMConfig(decoder_embed_dim=C, decoder_layers=2, tokens_per_sample=30, max_target_positions=30)
    config.dropout = ALMOST_ONE
    lm = shake(kind(plain_config(config, RecurrentLMConfig), dictionary)).train()
    assert lm.top_state(TOKENS).any()
    assert not lm(TOKENS)[0].any()
    assert lm.eval()(TOKENS)[0].abs().amax(-1).min() > 1e-3


@pytest.mark.parametrize("cell", ["rnn", "gru", "lstm"])
@torch.no_grad()
def test_dropout_is_between_the_layers_and_not_below_the_first(cell: str) -> None:
    """The embeddings have been dropped already; of the first layer's states nothing reaches the second one."""
    flags = {"cell": cell, "identity_start": False, "decoder_embed_dim": C, "decoder_layers": 2}
    direction = Direction({**flags, "dropout": ALMOST_ONE})
    (first, second), (first_other, second_other) = (direction(x)[0] for x in torch.randn(2, 1, 5, C))
    assert (first - first_other).abs().amax(-1).min() > 1e-3
    assert torch.equal(second, second_other)
    (_, second), (_, second_other) = (direction.eval()(x)[0] for x in torch.randn(2, 1, 5, C))
    assert (second - second_other).abs().amax(-1).min() > 1e-4


def test_an_identity_start_has_no_biases() -> None:
    flags = {"cell": "rnn", "identity_start": True, "decoder_embed_dim": C, "decoder_layers": 2, "dropout": 0.0}
    biases = [value for name, value in Direction(flags).named_parameters() if "bias" in name]
    assert len(biases) == 4
    assert not any(bias.any() for bias in biases)
