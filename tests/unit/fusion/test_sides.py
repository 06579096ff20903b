"""Representations in the place of word embeddings: what encoder and decoder see of the language model."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.fusion.source import SourceEmbedding
from lmfusion.fusion.target import TargetEmbedding

EOS = 2
SENTENCES = [[5, 9, 4, 11, EOS], [6, 7, EOS], [EOS]]


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_source_lm_reads_an_end_symbol_in_front_of_the_words(
    make_cloze: Any, make_fusion: Any, dictionary: Any, batch: Any, strategy: str
) -> None:
    """The LM sees </s> w1 ... wn </s>; the first state is dropped. Same alone, left- and right-padded."""
    represent = make_fusion(strategy, make_cloze()).eval()
    embedding = SourceEmbedding(represent, dictionary, 8)
    by_hand = [represent(torch.tensor([[EOS, *sentence]]))[0, 1:] for sentence in SENTENCES]
    for left in (False, True):
        for width in (0, 9):
            found = embedding(batch(SENTENCES, left=left, width=width))
            for row, expected in zip(found, by_hand, strict=True):
                length = len(expected)
                own, padding = (row[-length:], row[:-length]) if left else (row[:length], row[length:])
                torch.testing.assert_close(own, expected, rtol=0, atol=1e-5)
                assert not padding.any()


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_encoder_output_does_not_depend_on_padding(make_model: Any, batch: Any, strategy: str) -> None:
    encoder = make_model(strategy, "none").encoder
    alone = [encoder(torch.tensor([sentence]))["encoder_out"][0][:, 0] for sentence in SENTENCES]
    for left in (False, True):
        together = encoder(batch(SENTENCES, left=left))["encoder_out"][0]  # T x B x C
        for index, expected in enumerate(alone):
            length = len(expected)
            own = together[-length:, index] if left else together[:length, index]
            torch.testing.assert_close(own, expected, rtol=0, atol=1e-5)


def encoder_input(model: Any, tokens: Tensor) -> Tensor:
    x, _ = model.encoder.forward_embedding(tokens)
    return x


def test_encoder_has_no_positions_of_its_own_on_an_elmo_mix(make_model: Any) -> None:
    """Its input is the scaled representation and nothing else."""
    model = make_model("elmo", "none")
    tokens = torch.tensor([SENTENCES[0]])
    expected = math.sqrt(8) * model.encoder.embed_tokens(tokens)
    torch.testing.assert_close(encoder_input(model, tokens), expected)


@pytest.mark.parametrize("fusion", ["none", "finetune"])
def test_encoder_keeps_its_positions_otherwise(make_model: Any, fusion: str) -> None:
    model = make_model(fusion, "none")
    tokens = torch.tensor([SENTENCES[0]])
    positions = encoder_input(model, tokens) - math.sqrt(8) * model.encoder.embed_tokens(tokens)
    torch.testing.assert_close(positions, model.encoder.embed_positions(tokens))
    assert positions.std(dim=1).max() > 0.1


@pytest.mark.parametrize("src", ["none", "elmo"])
def test_decoder_keeps_its_positions_whatever_the_source(make_model: Any, src: str) -> None:
    assert make_model(src, "none").decoder.embed_positions is not None
    assert make_model(src, "elmo").decoder.embed_positions is not None


def test_scale_of_the_representation_can_be_set(make_model: Any) -> None:
    model = make_model("elmo", "elmo", src_embed_scale=0.5, tgt_embed_scale=1.25)
    tokens = torch.tensor([SENTENCES[0]])
    torch.testing.assert_close(encoder_input(model, tokens), 0.5 * model.encoder.embed_tokens(tokens))
    assert model.decoder.embed_scale == 1.25


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_target_lm_reads_the_decoder_input_as_it_is(
    make_causal: Any, make_fusion: Any, dictionary: Any, batch: Any, strategy: str
) -> None:
    """fairseq's decoder input already is </s> w1 ... wn."""
    represent = make_fusion(strategy, make_causal()).eval()
    embedding = TargetEmbedding(represent, dictionary, 8)
    rows = [[EOS, 5, 9, 4], [EOS, 6]]
    found = embedding(batch(rows))
    for row, own in zip(rows, found):
        torch.testing.assert_close(own[: len(row)], represent(torch.tensor([row]))[0], rtol=0, atol=1e-5)


@pytest.mark.parametrize("strategy", ["elmo", "finetune"])
def test_prediction_does_not_see_later_target_words(
    make_model: Any, net_input: dict[str, Tensor], strategy: str
) -> None:
    model = make_model("none", strategy)
    before = model(**net_input)[0]
    net_input["prev_output_tokens"][0, 3] = 7  # was 4
    moved = (model(**net_input)[0] - before)[0].abs().amax(-1)
    assert moved[:3].max() < 1e-6
    assert moved[3:].min() > 1e-5


def test_no_side_is_longer_than_its_lm_allows(make_model: Any) -> None:
    """The tiny LMs have 30 positions, fairseq's transformer 1,024."""
    assert make_model("elmo", "none").max_positions() == (30, 1024)
    assert make_model("none", "finetune").max_positions() == (1024, 30)
    model = make_model("elmo", "elmo", max_source_positions=7)
    assert model.max_positions() == (7, 30)


def test_longest_source_and_target_that_fairseq_lets_through_fit(make_model: Any) -> None:
    model = make_model("elmo", "elmo")
    source, target = torch.full((1, 30), 5), torch.full((1, 30), 5)
    assert model(source, torch.tensor([30]), target)[0].isfinite().all()
