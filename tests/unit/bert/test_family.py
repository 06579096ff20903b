"""The family bert by itself: sizes, segments, what a state sees, padding, symbols, pooler."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from fairseq.data import Dictionary
from fairseq.modules.transformer_sentence_encoder import TransformerSentenceEncoder
from torch import Tensor, nn

import lmfusion
from lmfusion.errors import InputError
from lmfusion.lm.bert import BertLM
from lmfusion.lm.loading import build, describe
from lmfusion.lm.transformer.encoder import segments

PAIR = [0, 5, 6, 7, 2, 8, 9, 2]  # <s> a a a </s> b b </s>
LARGE = {
    "decoder_layers": 24,
    "decoder_embed_dim": 1024,
    "decoder_ffn_embed_dim": 4096,
    "decoder_attention_heads": 16,
}


@pytest.mark.parametrize(
    ("sizes", "with_heads", "without"),
    [({}, 110_106_428, 109_482_240), (LARGE, 336_226_108, 335_141_888)],
    ids=["base", "large"],
)
def test_the_published_sizes(sizes: dict[str, int], with_heads: int, without: int) -> None:
    symbols = [*Dictionary().symbols, *(f"w{number}" for number in range(30_517)), "<mask>"]
    with torch.device("meta"):  # sizes without numbers
        lm = build({"family": "bert", "tokens_per_sample": 512, "max_target_positions": 512, **sizes}, symbols)
    assert sum(weight.numel() for weight in lm.parameters()) == with_heads
    lm.drop_softmax()
    assert sum(weight.numel() for weight in lm.parameters()) == without


def test_a_segment_begins_behind_the_first_separator() -> None:
    rows = torch.tensor([PAIR, [0, 5, 2, 6, 2, 7, 2, 1], [0, 5, 6, 7, 8, 9, 5, 2]])
    expected = [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 1, 1, 1, 1, 1], [0] * 8]
    assert segments(rows, 2).tolist() == expected


@torch.no_grad()
def test_states_are_those_of_fairseqs_encoder(make_bert: Callable[..., BertLM]) -> None:
    """fairseq's learned positions begin behind the padding index, its epsilon is another one."""
    lm = make_bert()
    theirs = TransformerSentenceEncoder(
        padding_idx=1, vocab_size=len(lm.symbols), num_encoder_layers=2, embedding_dim=16, ffn_embedding_dim=24,
        num_attention_heads=2, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0, max_seq_len=30,
        num_segments=2, encoder_normalize_before=True, activation_fn="gelu",
    ).eval()  # fmt: skip
    for module in theirs.modules():
        if isinstance(module, nn.LayerNorm):
            module.eps = 1e-12
    copies = {
        theirs.embed_tokens: lm.embed.tokens, theirs.segment_embeddings: lm.embed.segments,
        theirs.emb_layer_norm: lm.embed.layer_norm,
    }  # fmt: skip
    for layer, block in zip(theirs.layers, lm.layers, strict=True):
        attention = layer.self_attn
        projections = [attention.q_proj, attention.k_proj, attention.v_proj]
        for module, weight, bias in zip(
            projections, block.self_attn.in_proj.weight.chunk(3), block.self_attn.in_proj.bias.chunk(3)
        ):
            module.weight.copy_(weight)
            module.bias.copy_(bias)
        copies |= {
            attention.out_proj: block.self_attn.out_proj, layer.self_attn_layer_norm: block.attn_layer_norm,
            layer.fc1: block.fc1, layer.fc2: block.fc2, layer.final_layer_norm: block.ffn_layer_norm,
        }  # fmt: skip
    for module, own in copies.items():
        module.load_state_dict(own.state_dict())
    theirs.embed_positions.weight[2:].copy_(lm.embed.positions.weight)
    rows = torch.tensor([PAIR, [0, 5, 6, 2, 1, 1, 1, 1]])
    states, _ = theirs(rows, segment_labels=segments(rows, 2))
    words = rows.ne(1)
    for state, other in zip(lm.layer_states(rows), states, strict=True):
        torch.testing.assert_close(state[words], other.transpose(0, 1)[words], rtol=0, atol=1e-5)


@torch.no_grad()
def test_every_layer_above_the_embeddings_sees_the_words_to_its_right(make_bert: Callable[..., BertLM]) -> None:
    lm = make_bert()
    before, after = (lm.layer_states(torch.tensor([[0, 5, 6, last, 2]])) for last in (7, 8))
    moved = [(one - other)[0, 1].abs().max().item() for one, other in zip(before, after, strict=True)]
    assert moved[0] == 0
    assert all(change > 1e-4 for change in moved[1:])


@pytest.mark.parametrize("padding", [(0, 3), (3, 0), (2, 40)], ids=["right", "left", "beyond the positions"])
@torch.no_grad()
def test_states_and_pooled_vector_are_the_same_under_any_padding(
    make_bert: Callable[..., BertLM], padding: tuple[int, int]
) -> None:
    lm, row = make_bert(), torch.tensor([PAIR])
    padded = nn.functional.pad(row, padding, value=1)
    place = slice(padding[0], padding[0] + len(PAIR))
    for state, other in zip(lm.layer_states(row), lm.layer_states(padded), strict=True):
        torch.testing.assert_close(other[:, place], state, rtol=0, atol=1e-5)
    pooled = lm.pool(lm.top_state(row), row.eq(1))
    torch.testing.assert_close(lm.pool(lm.top_state(padded), padded.eq(1)), pooled, rtol=0, atol=1e-5)
    by_hand = torch.tanh(lm.top_state(row)[:, 0] @ lm.pooler.weight.t() + lm.pooler.bias)
    torch.testing.assert_close(pooled, by_hand)


def test_the_longest_row_fills_all_positions(make_bert: Callable[..., BertLM]) -> None:
    lm = make_bert()
    assert lm.max_positions() == 29  # and <s>
    assert lm.top_state(torch.tensor([[0, *[5] * 28, 2]])).shape == (1, 30, 16)
    with pytest.raises(InputError, match="31 tokens"):
        lm.top_state(torch.tensor([[0, *[5] * 29, 2]]))


def test_a_checkpoint_gives_the_same_states_and_serves_a_dictionary_without_the_mask(
    make_bert: Callable[..., BertLM], save_bert: Callable[[BertLM], Path]
) -> None:
    lm, row = make_bert(), torch.tensor([PAIR])
    loaded = lmfusion.load_lm(save_bert(lm))
    torch.testing.assert_close(loaded.top_state(row), lm.top_state(row).detach(), rtol=0, atol=0)
    served = lm.symbols[:-1]
    assert loaded.serve(served, what="the source dictionary") == 1.0
    assert build(describe(loaded, served), served).symbols == lm.symbols
    with pytest.raises(InputError, match="differ first at index 5"):
        loaded.serve([*served[:5], "other", *served[6:]], what="the source dictionary")


def test_encode_and_pair_have_the_frame_of_training(make_bert: Callable[..., BertLM]) -> None:
    lm = make_bert()
    assert lm.encode("w1 w2").tolist() == [[0, 5, 6, 2]]
    assert lm.vocabulary.pair(torch.tensor([5, 6]), torch.tensor([7])).tolist() == [0, 5, 6, 2, 7, 2]


def test_what_was_dropped_is_missed_by_name(make_bert: Callable[..., BertLM]) -> None:
    lm = make_bert()
    lm.drop_softmax()
    lm.drop_pooler()
    states = torch.zeros(1, 2, 16)
    with pytest.raises(InputError, match="heads"):
        lm.logits(states)
    with pytest.raises(InputError, match="pooler"):
        lm.pool(states, torch.zeros(1, 2, dtype=torch.bool))


def test_logits_by_hand(make_bert: Callable[..., BertLM]) -> None:
    """In float64, by the formulas: LN(gelu(W x + b)) Eᵀ + c, with the error function."""
    lm, x = make_bert(), torch.randn(3, 16)

    def exact(tensor: Tensor) -> Tensor:
        return tensor.detach().double()

    head = lm.masked_head
    hidden = exact(x) @ exact(head.dense.weight).t() + exact(head.dense.bias)
    hidden = hidden * 0.5 * (1 + torch.erf(hidden / 2**0.5))
    centred = hidden - hidden.mean(-1, keepdim=True)
    normed = centred / (hidden.var(-1, unbiased=False, keepdim=True) + 1e-12).sqrt()
    normed = normed * exact(head.layer_norm.weight) + exact(head.layer_norm.bias)
    expected = normed @ exact(lm.embed.tokens.weight).t() + exact(head.bias)
    torch.testing.assert_close(lm.logits(x).double(), expected, rtol=0, atol=1e-5)
