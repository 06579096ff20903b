"""``prefix_lm`` against the mask of its definition, in float64 and by hand; cached, padded, from a causal LM."""

from __future__ import annotations

import math
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Callable

import pytest
import torch
import torch.nn.functional as F
from fairseq.data import Dictionary
from fairseq.modules import SinusoidalPositionalEmbedding
from fairseq.sequence_generator import SequenceGenerator
from torch import Tensor

from lmfusion.consumers.prefix_lm import PrefixLM
from lmfusion.errors import InputError
from lmfusion.lm.causal import CausalLM

SOURCES = [[6, 7, 2], [2], [5, 9, 4, 11, 2]]
PREFIXES = torch.tensor([[2, 5, 4, 10], [2, 4, 4, 6], [2, 9, 8, 7]])

Build = Callable[..., PrefixLM]


@pytest.fixture
def one_dictionary(dictionary: Dictionary) -> SimpleNamespace:
    """A task whose sides have the same symbols."""
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)


@pytest.fixture
def make(make_prefix_cfg: Any, one_dictionary: SimpleNamespace, shake: Any) -> Build:
    """A tiny model in eval mode: random, or started from a language model's file."""

    def build(**flags: Any) -> PrefixLM:
        model = PrefixLM.build_model(make_prefix_cfg(**flags), one_dictionary)
        return (model if "prefix_lm" in flags else shake(model)).eval()

    return build


def logits(model: PrefixLM, source: list[int], target: Tensor) -> Tensor:
    """Of one pair alone: T x V."""
    tokens = torch.tensor([source])
    found: Tensor = model(tokens, torch.tensor([len(source)]), target[None])[0][0]
    return found


def by_hand(lm: CausalLM, row: Tensor, prefix: int) -> Tensor:
    """Logits of a whole row at once, T x V, by the formulas of a pre-norm transformer under the mask of a prefix LM."""
    allowed = torch.tensor([[j <= i or j < prefix for j in range(len(row))] for i in range(len(row))])
    table = SinusoidalPositionalEmbedding.get_embedding(len(row) + 2, lm.embed_dim, 1).double()
    x = math.sqrt(lm.embed_dim) * lm.embed.tokens.weight[row] + table[2:]
    for block in lm.layers:
        normed = F.layer_norm(x, x.shape[-1:], block.layer_norm.weight, block.layer_norm.bias)
        parts = (normed @ block.self_attn.in_proj.weight.T + block.self_attn.in_proj.bias).chunk(3, dim=-1)
        heads = []
        for query, key, value in zip(*(part.chunk(block.self_attn.num_heads, dim=-1) for part in parts)):
            scores = query @ key.T / math.sqrt(query.size(-1))
            heads.append(scores.masked_fill(~allowed, -math.inf).softmax(-1) @ value)
        x = x + torch.cat(heads, -1) @ block.self_attn.out_proj.weight.T + block.self_attn.out_proj.bias
        ffn = block.ffn
        normed = F.layer_norm(x, x.shape[-1:], ffn.layer_norm.weight, ffn.layer_norm.bias)
        x = x + (normed @ ffn.fc1.weight.T + ffn.fc1.bias).relu() @ ffn.fc2.weight.T + ffn.fc2.bias
    return x @ lm.output_weight.T


@torch.no_grad()
def test_source_and_target_are_one_row_under_the_mask_of_a_prefix_lm(make: Build) -> None:
    model = make().double()
    for source, target in zip(SOURCES, PREFIXES):
        expected = by_hand(model.decoder.lm, torch.cat([torch.tensor(source), target]), len(source))[len(source) :]
        torch.testing.assert_close(logits(model, source, target), expected, rtol=0, atol=1e-6)


@torch.no_grad()
def test_a_source_is_read_in_both_directions_and_never_sees_its_target(make: Build) -> None:
    model = make()
    base = logits(model, [6, 7, 8, 2], PREFIXES[0])
    for place in range(3):
        changed = [6, 7, 8, 2]
        changed[place] = 13
        assert (logits(model, changed, PREFIXES[0])[0] - base[0]).abs().max() > 1e-3, "every word of it counts"
    first = model.encoder(torch.tensor([[6, 7, 8, 2]]))["keys"][-1]
    second = model.encoder(torch.tensor([[6, 7, 13, 2]]))["keys"][-1]
    assert (first - second)[:, :, 0].abs().max() > 1e-3, "the first word sees the last one"
    later = PREFIXES[0].clone()
    later[3] = 12
    assert torch.equal(logits(model, [6, 7, 8, 2], later)[:3], base[:3]), "a target word sees no later one"


@pytest.mark.parametrize(
    "flag", [{}, {"share_decoder_input_output_embed": True}, {"no_token_positional_embeddings": True}]
)
@torch.no_grad()
def test_a_pair_gives_the_same_under_any_padding(make: Build, batch: Any, flag: dict[str, Any]) -> None:
    model = make(**flag)
    targets = [[2, 5, 4], [2, 4, 4, 6, 8], [2]]
    alone = [logits(model, source, torch.tensor(target)) for source, target in zip(SOURCES, targets)]
    for left in (False, True):
        sources, prefixes = batch(SOURCES, left=left, width=8), batch(targets, left=left, width=9)
        together = model(sources, sources.ne(1).sum(1), prefixes)[0]
        for found, row, expected in zip(together, prefixes, alone):
            torch.testing.assert_close(found[row.ne(1)], expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_scores_in_a_beam_are_those_of_whole_passes(make: Build, batch: Any, dictionary: Dictionary) -> None:
    """Sentences of a batch end at different steps, so that rows are left out of the source's keys, too."""
    model = make()
    generator = SequenceGenerator([model], dictionary, beam_size=4, max_len_a=1, max_len_b=3, normalize_scores=False)
    sources = batch(SOURCES, left=True)
    found = generator.generate([model], {"net_input": {"src_tokens": sources, "src_lengths": sources.ne(1).sum(1)}})
    assert len({len(each["tokens"]) for hypotheses in found for each in hypotheses}) > 1
    for source, hypotheses in zip(SOURCES, found):
        for each in hypotheses:
            tokens = each["tokens"]
            likelihood = logits(model, source, torch.cat([torch.tensor([2]), tokens[:-1]])).log_softmax(-1)
            expected = likelihood.gather(-1, tokens[:, None]).squeeze(-1)
            torch.testing.assert_close(each["positional_scores"], expected, rtol=0, atol=1e-5)


@torch.no_grad()
def test_several_positions_at_once_behind_a_cache_are_those_of_the_whole_pass(make: Build) -> None:
    model, state = make(), {}
    encoded = model.encoder(torch.tensor([SOURCES[2]]))
    steps = [model.decoder(PREFIXES[2:, :end], encoded, incremental_state=state)[0] for end in (1, 4)]
    torch.testing.assert_close(torch.cat(steps, 1)[0], logits(model, SOURCES[2], PREFIXES[2]), rtol=0, atol=1e-5)


@pytest.mark.parametrize("tied", [True, False])
@torch.no_grad()
def test_started_from_a_causal_lm_it_is_that_lm_behind_no_source(
    make: Build, make_causal: Any, save_lm: Any, tied: bool
) -> None:
    lm = make_causal(share_decoder_input_output_embed=tied)
    model = make(prefix_lm=str(save_lm(lm)), decoder_layers=9, dropout=0.25)
    none = [torch.empty(3, 2, 0, 8)] * 2
    found, _ = model.decoder(PREFIXES, {"keys": none, "values": none, "visible": [torch.empty(3, 0, dtype=torch.bool)]})
    torch.testing.assert_close(found, lm(PREFIXES)[0], rtol=0, atol=1e-5)
    row = torch.tensor([[5, 9, 2]])
    assert torch.equal(
        model.encoder(row)["keys"][0],
        lm.layers[0].self_attn.heads(lm.layers[0].self_attn.in_proj(lm.layers[0].layer_norm(lm.embed(row))))[1],
    )
    assert len(model.decoder.lm.layers) == 2, "the sizes are the language model's"
    assert model.decoder.lm.layers[0].dropout == 0.25, "dropout is the flag's"
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_source_and_target_train_the_same_weights_once(make: Build, batch: Any) -> None:
    model = make()
    names = [name for name, _ in model.named_parameters()]
    assert len(names) == len(model.state_dict()) - 1, "the symbols are no parameter, and nothing is there twice"
    model(batch(SOURCES), torch.tensor([3, 1, 5]), PREFIXES)[0].square().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_what_cannot_be_used_is_refused(
    make: Build,
    make_prefix_cfg: Any,
    make_causal: Any,
    save_lm: Any,
    src_lm: Path,
    dictionary: Dictionary,
    other_dictionary: Dictionary,
) -> None:
    with pytest.raises(InputError, match="give a causal LM"):
        make(prefix_lm=str(src_lm))
    with pytest.raises(InputError, match="learned positions, 30 of them"):
        make(prefix_lm=str(save_lm(make_causal(decoder_learned_pos=True))))
    with pytest.raises(InputError, match="--activation-dropout 1: give a probability"):
        make(activation_dropout=1.0)
    with pytest.raises(InputError, match="--max-source-positions 0"):
        make(max_source_positions=0)
    asked = {"generation": SimpleNamespace(beam=1, print_alignment="hard")}
    with pytest.raises(InputError, match="--print-alignment"):
        make().prepare_for_inference_(SimpleNamespace(**asked))
    with pytest.raises(InputError, match="--decoder-attention-heads 3"):
        make(decoder_attention_heads=3)
    sides = SimpleNamespace(source_dictionary=dictionary, target_dictionary=other_dictionary)
    with pytest.raises(InputError, match="--joined-dictionary"):
        PrefixLM.build_model(make_prefix_cfg(), sides)
    lm = save_lm(make_causal())
    both = SimpleNamespace(source_dictionary=other_dictionary, target_dictionary=other_dictionary)
    with pytest.raises(InputError, match="index 7"):
        PrefixLM.build_model(make_prefix_cfg(prefix_lm=str(lm)), both)
