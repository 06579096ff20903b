"""Where the towers start: the embedding sum, its positions, and the dropout of input tokens."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from lmfusion.errors import InputError
from lmfusion.lm.transformer.layers import TokenEmbedding

PAD, UNK = 1, 3


def embedding(**flags: Any) -> TokenEmbedding:
    """Without positions, row t is sqrt(C) times the token's vector."""
    values = {
        "unk_idx": UNK,
        "max_positions": 12,
        "learned_positions": False,
        "no_positions": True,
        "dropout": 0.0,
        "input_dropout": 0.0,
    }
    return TokenEmbedding(20, 4, PAD, **{**values, **flags})


def read_as(embed: TokenEmbedding, x: Tensor) -> Tensor:
    """Which token each position was read as: ... x C -> ..."""
    matches = (x.unsqueeze(-2) - 2 * embed.tokens.weight).abs().amax(-1) < 1e-6  # sqrt(4) = 2
    assert matches.sum(-1).eq(1).all()
    return matches.long().argmax(-1)


def test_input_dropout_reads_unk_instead_of_tokens_and_never_touches_padding() -> None:
    embed = embedding(input_dropout=0.3).train()
    tokens = torch.tensor([[5, 6, 7, 8, PAD], [9, 10, PAD, PAD, PAD]]).repeat(200, 1)
    read = read_as(embed, embed(tokens))
    padding = tokens.eq(PAD)
    assert read[padding].eq(PAD).all()
    words, read_words = tokens[~padding], read[~padding]
    assert (read_words.eq(words) | read_words.eq(UNK)).all()
    assert read_words.eq(UNK).float().mean().item() == pytest.approx(0.3, abs=0.05)


def test_input_dropout_is_off_outside_training() -> None:
    embed = embedding(input_dropout=0.9).eval()
    tokens = torch.arange(4, 12).unsqueeze(0)
    assert torch.equal(read_as(embed, embed(tokens)), tokens)


def test_input_dropout_flag_reaches_both_models(make_cloze: Any, make_causal: Any) -> None:
    tokens = torch.tensor([[2, 5, 9, 4, 2]])
    for make in (make_cloze, make_causal):
        lm = make(input_dropout=1.0, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0).train()
        torch.testing.assert_close(lm(tokens)[0], lm(torch.full_like(tokens, UNK))[0])
        assert (lm(tokens)[0] - lm.eval()(tokens)[0]).abs().max() > 1e-3


def test_dropout_of_the_sum_keeps_its_expectation() -> None:
    embed = embedding(dropout=0.5).train()
    x = embed(torch.tensor([[5, 6]]).repeat(4000, 1))
    clean = 2 * embed.tokens.weight[[5, 6]]
    assert x.eq(0).float().mean().item() == pytest.approx(0.5, abs=0.02)
    torch.testing.assert_close(x.mean(0), clean, rtol=0, atol=0.15)


def test_learned_positions_are_added_from_the_first_row_on() -> None:
    embed = embedding(no_positions=False, learned_positions=True)
    assert embed.learned_positions is not None
    x = embed(torch.tensor([[5, 6, 7]]), offset=4)
    expected = 2 * embed.tokens.weight[[5, 6, 7]] + embed.learned_positions.weight[4:7]
    torch.testing.assert_close(x[0], expected)


def test_sinusoids_go_on_where_a_short_first_batch_ended() -> None:
    """The table is built on demand: a later, longer sentence must get the same rows."""
    short_first = embedding(no_positions=False, max_positions=2000)
    short_first(torch.full((1, 3), 5))
    long_at_once = embedding(no_positions=False, max_positions=2000)
    long_at_once.load_state_dict(short_first.state_dict())
    tokens = torch.full((1, 1500), 5)
    torch.testing.assert_close(short_first(tokens), long_at_once(tokens), rtol=0, atol=0)


def test_sinusoids_are_no_part_of_a_checkpoint() -> None:
    embed = embedding(no_positions=False)
    embed(torch.tensor([[5, 6]]))
    assert list(embed.state_dict()) == ["tokens.weight"]


@pytest.mark.parametrize("learned", [False, True])
def test_longest_sentence_fits_with_both_ends_and_one_more_is_refused(make_cloze: Any, learned: bool) -> None:
    """fairseq counts neither </s> that a cloze sample gets on top (30 positions in the tiny models)."""
    lm = make_cloze(decoder_learned_pos=learned)
    assert lm.max_positions() == 30
    assert lm(torch.full((1, 32), 5))[0].isfinite().all()
    with pytest.raises(InputError, match="33 tokens is longer than the 30 positions"):
        lm(torch.full((1, 33), 5))
